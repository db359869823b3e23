"""Deliberate differences in what becomes of a turn when a hook, a handler or the model fails."""

from typing import Any

from tests.differential.asking import gate
from tests.differential.difference import Difference, notes, results
from tests.differential.handlers import pipeline
from tests.differential.hooks import ONE, TWO, hooked
from tests.differential.running import Scenario, blocks
from tests.differential.sdk import World

from countersign.models import calls


def _second_fails(world: World, event: Any) -> None:
    if event.tool_use["input"]["x"] == 2:
        raise ValueError("the second")


def _fails(world: World, event: Any) -> None:
    world.note(event, "about to fail")
    raise ValueError("broke")


def _fails_once(world: World, event: Any) -> None:
    world.note(event, f"hears {event.result['status']}")
    if event.result["status"] == "success":
        raise ValueError("can't write it down")


def _last_results(trace: Any) -> int:
    return len(results(trace))


def _none(world: World) -> Any:
    return world.agent(ONE, handlers=[world.handler("h", "deny", before_tool_call=lambda event: None)])


def _second_fails_once_answered(world: World) -> Any:
    def hook(event: Any) -> None:
        gate(event)
        if event.tool_use["input"]["x"] == 2 and not event.agent.state.get("failed"):
            event.agent.state.set("failed", True)
            raise ValueError("once")

    return world.agent(TWO, hooks=[world.hooks(BeforeToolCall=hook)])


FOUND = (
    Difference(
        "approved-calls-run-once",
        "after an error on resume the same answers can be sent again, and an approved call runs twice",
        "all hooks are heard before a call runs, so none has run; the turn is over, and the answers are refused",
        "Single use",
        Scenario("sent again", _second_fails_once_answered, [["y", "y"]],
                 ("go", lambda found: blocks(found, ["y", "y"]))),
        lambda trace: len(notes(trace, "act(1)")), 2, 0,
    ),
    Difference(
        "finished-results-stay", "an error in one call's hook loses the results of its siblings",
        "all hooks are heard before a call runs; finished results stay, and every call has one", "History stays valid",
        hooked("the second fails", TWO, {"BeforeToolCall": _second_fails}), _last_results, 0, 2,
    ),
    Difference(
        "error-in-before_tool_call", "the conversation ends with a call that has no result",
        "the call has an error result", "History stays valid",
        pipeline(["raise-throw"], "before_tool_call"), _last_results, 0, 1, ("messages", "seen"),
    ),
    Difference(
        "error-in-after_tool_call",
        "After callbacks are called a second time with an error in place of the result, and no result is kept",
        "once, and the tool's result is kept", "History stays valid",
        pipeline(["raise-throw"], "after_tool_call"),
        lambda trace: (len(notes(trace, "a hears")), _last_results(trace)), (2, 0), (1, 1), ("log", "messages"),
    ),
    Difference(
        "a-success-stays-one", "an After callback that fails on a success turns it into an error that the model sees",
        "the turn fails with the callback's error", "the error is reported as itself",
        hooked("fails once", ONE, {"AfterToolCall": _fails_once}),
        lambda trace: (trace.stops, [status for status, _ in results(trace)]),
        (["end_turn"], ["error"]), (["ValueError: can't write it down"], ["success"]),
    ),
    Difference(
        "error-in-after_model_call", "After callbacks are called a second time, with their own error as the model's",
        "once", "the error is reported as itself",
        pipeline(["raise-throw"], "after_model_call"), lambda trace: len(notes(trace, "a hears")), 2, 1, ("log",),
    ),
    Difference(
        "error-in-before_model_call", "AfterModelCallEvent fires with the callback's error, as if the model had failed",
        "it does not fire: no model was called", "the error is reported as itself",
        pipeline(["raise-throw"], "before_model_call"), lambda trace: len(notes(trace, "AfterModelCall")), 1, 0,
        ("log",),
    ),
    Difference(
        "error-in-before_invocation", "AfterInvocationEvent does not fire", "it fires, as for every other end",
        "who opens something at the start can close it",
        pipeline(["raise-throw"], "before_invocation"), lambda trace: len(notes(trace, "AfterInvocation")), 0, 1,
        ("log",),
    ),
    Difference(
        "error-at-the-batch", "AfterToolsEvent does not fire if a BeforeToolsEvent hook fails", "it fires",
        "who opens something at the start can close it",
        hooked("the batch hook fails", ONE, {"BeforeTools": _fails}), lambda trace: len(notes(trace, "AfterTools")),
        0, 1, ("log", "messages"),
    ),
    Difference(
        "deny-fails-closed-afterwards", '`on_error="deny"` does nothing on after_ methods',
        "the tool's result is withheld from the model; the model's answer is discarded and the turn ends",
        "fail closed", pipeline(["raise-deny"], "after_tool_call"), lambda trace: results(trace)[0],
        ("success", "1"), ("error", "DENIED: withheld because handler 'a' failed: a broke"),
        ("stops", "log", "messages", "seen"),
    ),
    Difference(
        "none-follows-on-error", "a handler that returns None fails the turn whatever its `on_error` says",
        "that is an error of the handler, by its policy", "fail closed",
        Scenario("returns None", _none), lambda trace: (trace.stops[0].split(":")[0], len(results(trace))),
        ("TypeError", 0), ("end_turn", 1), ("stops", "log", "messages", "seen"),
    ),
    Difference(
        "model-errors-are-wrapped", "a model's error is raw on the first call and an EventLoopException later",
        "`EventLoopException` with the cause, always", "one way to catch it",
        Scenario("fails at once, then later", lambda world: world.agent(
            [RuntimeError("first"), calls(("act", {"x": 1})), RuntimeError("later")]), prompts=("go", "again")),
        lambda trace: trace.raised, ["RuntimeError", "EventLoopException"], ["EventLoopException"] * 2,
    ),
)  # fmt: skip
