"""Deliberate differences in what the answers of people do."""

from typing import Any

from tests.differential.approving import confirm
from tests.differential.asking import asks, gate, script
from tests.differential.difference import Difference, notes, results
from tests.differential.handlers import pipeline
from tests.differential.running import Scenario, blocks
from tests.differential.sdk import World

from countersign.models import calls

ONE = script(1)


def _hooked(name: str, callback: Any, replies: Any = (), turns: Any = ONE, event: str = "BeforeToolCall",
            body: Any = None, **more: Any) -> Scenario:  # fmt: skip
    """An agent with one hook."""

    def build(world: World) -> Any:
        hooks = [world.hooks(**{event: lambda e: callback(world, e)})]
        return world.agent(turns, hooks=hooks, tools=[world.act(body)])

    return Scenario(name, build, replies, **more)


def _two_acts(**arguments: Any) -> Any:
    def build(world: World) -> Any:
        return world.agent(script(2), handlers=[world.sdk.HumanInTheLoop(**arguments)])

    return build


def _trusted_before(world: World) -> Any:
    key = "hitl:trusted_tools" if world.sdk.root == "strands" else "countersign:trusted-tools"
    return world.agent(ONE, handlers=[world.sdk.HumanInTheLoop()], state={key: ["act"]})


def _keeps(world: World, event: Any) -> None:
    event.agent.state.set("heard", [event.interrupt("q")])


async def _never(said: Any) -> bool:
    return False


def _asks_once_only(world: World, event: Any) -> None:
    if not event.agent.state.get("asked"):
        event.agent.state.set("asked", True)
        gate(event)


def _grows(world: World, event: Any) -> None:
    passes = (event.agent.state.get("passes") or 0) + 1
    event.agent.state.set("passes", passes)
    event.tool_use = {**event.tool_use, "input": {"x": passes * 100}}
    event.interrupt("q", reason="fixed")


def _retried(world: World) -> Any:
    def again(event: Any) -> None:
        event.retry = not event.agent.state.get("done")
        event.agent.state.set("done", True)

    return world.agent(ONE, hooks=[world.hooks(BeforeToolCall=gate, AfterToolCall=again)])


def _repeats(world: World) -> Any:
    turns = [calls(("act", {"x": 1}))] * 5
    return world.agent([*turns, "gave up"], hooks=[world.hooks(BeforeToolCall=gate)])


FOUND = (
    Difference(
        "refusal-wins-over-trust", '"t" for one call runs a sibling that was refused',
        "the refused call does not run", "A refusal wins",
        Scenario("t, then n", _two_acts(enable_trust=True), [["t", "n"]]),
        lambda trace: [status for status, _ in results(trace)], ["success", "success"], ["success", "error"],
    ),
    Difference(
        "trust-counts-only-while-enabled", "trust in `agent.state` is read though trust is disabled",
        "it is read only while trust is enabled", "human-in-the-loop document",
        Scenario("trusted before", _trusted_before), lambda trace: trace.stops, ["end_turn"], ["interrupt"],
    ),
    Difference(
        "names-of-human-in-the-loop",
        "the handler, its prompt and its key in `agent.state` have Strands' names",
        "our names; the prompt is the documents'", "human-in-the-loop document",
        Scenario("names", lambda world: world.agent(ONE, handlers=[world.sdk.HumanInTheLoop()]), raw=True),
        lambda trace: trace.asked[0],
        [["strands:human-in-the-loop", 'Approve "act"?\n  Input: {"x": 1}']],
        [["countersign:human-in-the-loop", 'Tool "act" requires human approval. Input: {"x": 1}']],
    ),
    Difference(
        "async-evaluate-is-awaited", "an async `evaluate` is a truthy coroutine: it approves",
        "it is awaited", "Presence, not truth",
        confirm("async judge", {"evaluate": _never}, [["y"]]),
        lambda trace: results(trace)[0][0], "success", "error",
    ),
    Difference(
        "none-is-an-answer", "None as an answer asks for ever", "None is an answer", "Presence, not truth",
        _hooked("answers None", _keeps, [[None], [None], [None]]), lambda trace: len(trace.asked), 4, 1,
    ),
    Difference(
        "answers-are-whole-or-nothing", "a batch of answers that fails keeps the answers before the bad one",
        "nothing of it counts", "All or nothing, first wins",
        asks("one good, one bad", 2, lambda world: [world.hooks(BeforeToolCall=gate)],
             [lambda found: [*blocks(found, ["y", ...]),
                             {"interruptResponse": {"interruptId": "nope", "response": "y"}}]],
             prompts=("go", lambda found: blocks(found, [..., "y"]))),
        lambda trace: trace.stops[-1], "end_turn", "interrupt",
    ),
    Difference(
        "refused-answers-have-codes", "bad answers raise KeyError or TypeError",
        "`AnswerRefused` with a code and the next step; a prompt in place of answers is a TypeError in both",
        "All or nothing, first wins",
        asks("unknown id", 1, lambda world: [world.hooks(BeforeToolCall=gate)],
             [lambda found: [{"interruptResponse": {"interruptId": "nope", "response": "y"}}]]),
        lambda trace: trace.stops[-1].split(":")[0], "KeyError", "AnswerRefused", ("stops",),
    ),
    Difference(
        "a-refusal-does-not-wait", "a refused call stays open until its other questions are answered",
        "it has its result at once; the other questions are withdrawn", "A refusal wins",
        asks("two hooks, the first is refused", 1, lambda world: [
            world.hooks(BeforeToolCall=lambda e: gate(e, "a")), world.hooks(BeforeToolCall=lambda e: gate(e, "b"))],
            [["n"], ["y"]]),
        lambda trace: trace.stops, ["interrupt", "interrupt", "end_turn"], ["interrupt", "end_turn"],
        ("stops", "asked", "log"),
    ),
    Difference(
        "a-no-is-a-no", "a call runs though the person said no, if the code that asked goes on",
        "it does not run: the question's own word for no, and any clear one where only a hook judges", "A refusal wins",
        _hooked("goes on after a no", _keeps, [["no"]]), lambda trace: [status for status, _ in results(trace)],
        ["success"], ["error"], ("log", "messages", "seen"),
    ),
    Difference(
        "refusal-has-its-words", "the model learns that a Confirm failed", "and the words of the person who refused",
        "The refusal's words reach the model",
        pipeline(["confirm"], "before_tool_call", [["use the other one"]]), lambda trace: results(trace)[0][1],
        "CONFIRMATION_FAILED: a asks", "CONFIRMATION_FAILED: a asks\nuse the other one", ("log", "messages", "seen"),
    ),
    Difference(
        "repeated-refusals-are-bounded", "a call that is refused again and again is asked about each time",
        "after three refusals in a turn nobody is asked any more", "The refusal's words reach the model",
        Scenario("five times no", _repeats, [["n"]] * 5), lambda trace: len(trace.asked), 5, 3,
    ),
    Difference(
        "an-answer-binds-the-call", "a hook that does not ask again on resume lets a refused call run",
        "it stays refused", "An answer binds the call, not the code",
        _hooked("asks only once", _asks_once_only, [["n"]]), lambda trace: results(trace)[0][0], "success", "error",
    ),
    Difference(
        "what-was-signed-runs", "an input that changes after the answer runs as it is then",
        "the approval is void and the person is asked again", "Run what was signed",
        _hooked("grows", _grows, [["y"]]), lambda trace: trace.stops[-1], "end_turn", "interrupt",
    ),
    Difference(
        "an-approval-covers-one-run", "a retry by a hook runs an approved call again",
        "it is asked again, unless the tool is idempotent", "Single use",
        Scenario("approved and retried", _retried, [["y"]]),
        lambda trace: (trace.stops[-1], len(notes(trace, "act("))), ("end_turn", 2), ("interrupt", 1),
    ),
    Difference(
        "a-body-that-waits-is-not-run", "a body whose question is still open runs again whenever a sibling is answered",
        "it runs once its question is answered", "Partial answers are normal",
        asks("two bodies", 2, lambda world: [], [["a"], ["b"]], lambda c, x: c.interrupt("q")),
        lambda trace: len(notes(trace, "act(")), 5, 4, ("log",),
    ),
)  # fmt: skip
