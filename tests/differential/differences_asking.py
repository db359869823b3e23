"""Deliberate differences in when and how people are asked."""

from typing import Any

from tests.differential.approving import hitl
from tests.differential.asking import gate, script
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


def _answered_by_a_hook(world: World) -> Any:
    def resume(event: Any) -> None:
        if event.result.interrupts:
            event.resume = blocks(event.result.interrupts, ["y"])

    return world.agent(ONE, hooks=[world.hooks(BeforeToolCall=gate, AfterInvocation=resume)])


def _asks_itself(world: World, name: str) -> Any:
    def body(event: Any) -> Any:
        event.interrupt(name)
        return world.sdk.Proceed()

    return body


def _swallows(world: World, event: Any) -> None:
    try:
        event.interrupt("q")
    except Exception as error:
        world.note(event, f"swallowed {type(error).__name__}")


def _asks_inline(world: World) -> Any:
    def ask(prompt: str) -> str:
        if world.log is not None:
            world.log.append(("", "asked inline"))
        return "y"

    later = world.handler("later", before_tool_call=lambda event: world.sdk.Confirm(prompt="?"))
    return world.agent(ONE, handlers=[world.sdk.HumanInTheLoop(ask=ask), later])


_TWINS = [calls(("act", {"x": 1}, "twin"), ("act", {"x": 2}, "twin")), "done"]
_FIXED_ID = [calls(("act", {"x": 1}, "same")), "done"]


def _renamed_late(world: World) -> Any:
    def rename(event: Any) -> None:
        event.tool_use["name"] = "act"

    late = world.handler("late", before_tool_call=lambda event: world.sdk.Transform(apply=rename))
    handlers = [world.sdk.HumanInTheLoop(allowed_tools=["look"]), late]
    tools = [world.act(), world.act(name="look")]
    return world.agent([calls(("look", {"x": 1})), "done"], handlers=handlers, tools=tools)


FOUND = (
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
        "handlers-ask-together", "of two handlers that call `event.interrupt` themselves, one asks after the other",
        "both ask at once, as two hooks do", "Ask only about what can run",
        Scenario("two handlers ask", lambda world: world.agent(ONE, handlers=[
            world.handler(name, before_tool_call=_asks_itself(world, name)) for name in "ab"]), [["y", "y"]]),
        lambda trace: [name for name, _ in trace.asked[0]], ["a"], ["a", "b"],
        ("asked", "stops", "log"),
    ),
    Difference(
        "handlers-hear-the-tool-that-runs",
        "a call that a later handler turns into one of another tool runs as it was judged before",
        "all handlers are heard about the tool that would run", "Run what was signed",
        Scenario("renamed after the list was checked", _renamed_late),
        lambda trace: (trace.stops, notes(trace, "act")), (["end_turn"], ["act(1)"]), (["interrupt"], []),
    ),
    Difference(
        "code-does-not-answer", "an AfterInvocationEvent hook may answer the open questions by `event.resume`",
        "`resume` is a prompt; the questions stay open for people", "An answer binds the call, not the code",
        Scenario("a hook answers", _answered_by_a_hook), lambda trace: trace.stops, ["end_turn"], ["interrupt"],
    ),
)  # fmt: skip
