"""Deliberate differences in how people are asked and what their answers do."""

from typing import Any

from tests.differential.approving import confirm, hitl
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


def _batch(world: World, event: Any) -> None:
    event.interrupt("batch")


def _same_ids(world: World, event: Any) -> None:
    event.agent.state.set("answers", [*(event.agent.state.get("answers") or []), event.interrupt("q")])


def _preempts_once(world: World, event: Any) -> None:
    first = not event.agent.state.get("turn")
    event.agent.state.set("turn", 1)
    if first:
        event.interrupt("q", response="y")
        raise ValueError("the turn fails")
    event.agent.state.set("heard", event.interrupt("q"))


def _keeps(world: World, event: Any) -> None:
    event.agent.state.set("heard", [event.interrupt("q")])


def _swallows(world: World, event: Any) -> None:
    try:
        event.interrupt("q")
    except Exception as error:
        world.note(event, f"swallowed {type(error).__name__}")


async def _never(said: Any) -> bool:
    return False


def _asks_inline(world: World) -> Any:
    def ask(prompt: str) -> str:
        if world.log is not None:
            world.log.append(("", "asked inline"))
        return "y"

    later = world.handler("later", before_tool_call=lambda event: world.sdk.Confirm(prompt="?"))
    return world.agent(ONE, handlers=[world.sdk.HumanInTheLoop(ask=ask), later])


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


_TWINS = [calls(("act", {"x": 1}, "twin"), ("act", {"x": 2}, "twin")), "done"]
_FIXED_ID = [calls(("act", {"x": 1}, "same")), "done"]

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
        "ids-of-batch-questions", "a batch question has the same id in every turn",
        "no id is used twice", "One question, one call",
        _hooked("two batches", _batch, [["y"], ["y"]], ONE[:2] * 2, "BeforeTools", prompts=("go", "again")),
        lambda trace: len({i for ids in trace.ids for i in ids}), 1, 2,
    ),
    Difference(
        "twin-tool-use-ids", "two calls with one toolUseId share a question and its answer",
        "each has its own", "One question, one call",
        _hooked("twins", _same_ids, [["a", "b"]], _TWINS), lambda trace: trace.state["answers"], ["b", "b"], ["a", "b"],
    ),
    Difference(
        "nothing-outlives-its-question", "a known answer outlives a failed run and answers a later call of the same id",
        "a later call asks", "One question, one call",
        _hooked("preempts, fails, goes on", _preempts_once, (), [_FIXED_ID[0], *_FIXED_ID], prompts=("go", "again")),
        lambda trace: trace.stops[-1], "end_turn", "interrupt",
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
        "an-interrupt-cant-be-swallowed", "`except Exception` around an interrupt runs the call without an answer",
        "it pauses all the same: the interrupt is recorded before it is raised, as a BaseException",
        "An answer binds the call, not the code",
        _hooked("swallows", _swallows), lambda trace: (trace.stops, notes(trace, "swallowed")),
        (["end_turn"], ["swallowed InterruptException"]), (["interrupt"], []),
    ),
    Difference(
        "ask-is-heard-once", "an inline `ask` asks again when another question has paused the call",
        "once for the call as it stands", "Presence, not truth",
        Scenario("inline and a pause", _asks_inline, [["y"]]),
        lambda trace: len(notes(trace, "asked inline")), 2, 1, ("log",),
    ),
    Difference(
        "a-classifier-is-heard-once", "on resume the classifier's reason is gone from the question and the result",
        "the verdict stays with the call", "Presence, not truth",
        hitl("because it is risky", lambda w: {"classifier": lambda event: w.sdk.ClassifierResult(
            requires_human_in_the_loop=event.tool_use["name"] == "act", reason="risky")}, [["n"]]),
        lambda trace: "because risky" in results(trace)[0][1], False, True, ("log", "messages", "seen"),
    ),
    Difference(
        "nobody-is-asked-in-vain", "a Confirm asks although a later handler denies or guides, or a hook has cancelled",
        "all handlers are heard before a person is asked", "Ask only about what can run",
        pipeline(["confirm", "deny"], "before_tool_call", [["y"]]),
        lambda trace: trace.stops, ["interrupt", "end_turn"], ["end_turn"],
    ),
    Difference(
        "all-are-heard-before-asking", "handlers behind a Confirm are heard once it is answered, and then asked",
        "they are heard in every pass; their Confirms come one after the other as there",
        "Ask only about what can run", pipeline(["confirm", "proceed"], "before_tool_call", [["y"]]),
        lambda trace: notes(trace, "a hears", "b hears"),
        ["a hears before_tool_call", "a hears before_tool_call", "b hears before_tool_call"],
        ["a hears before_tool_call", "b hears before_tool_call"] * 2, ("log",),
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
