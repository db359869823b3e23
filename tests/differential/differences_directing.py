"""Deliberate differences where a program directs its agent itself: direct calls, cancellation."""

from typing import Any

from tests.differential.cancelling import cancelled_then_answered, script
from tests.differential.difference import Difference, notes, texts
from tests.differential.running import Does, Scenario
from tests.differential.sdk import World

from countersign.models import calls

ONE = [calls(("act", {"x": 1})), "done", "done"]


def _asks(world: World) -> Any:
    def hook(event: Any) -> None:
        if event.interrupt("ok?") != "y":
            event.cancel_tool = "denied"

    return world.agent(script, hooks=[world.hooks(BeforeToolCall=hook)])


def _calls_from_a_hook(world: World) -> Any:
    def hook(event: Any) -> None:
        event.agent.tool.act(x=9, record_direct_tool_call=False)

    return world.agent(ONE, hooks=[world.hooks(BeforeInvocation=hook)], observed=False)


def _gated_batch(world: World) -> Any:
    def gate(event: Any) -> None:
        if any(block["toolUse"]["input"]["x"] == 9 for block in event.message["content"]):
            event.cancel = "not these"

    return world.agent(ONE, hooks=[world.hooks(BeforeTools=gate)], observed=False)


def _cancel(**how: Any) -> Does:
    return Does(lambda agent: agent.cancel(**how))


def _answered(interrupts: Any) -> list[Any]:
    return [{"interruptResponse": {"interruptId": item.id, "response": "y"}} for item in interrupts]


FOUND = (
    Difference(
        name="a-cancelled-turn-ends-with-words",
        there="a cancelled turn whose tools were asked for ends with their results",
        here="the model's place is taken by the words of `cancel(message=...)`, or by \"Tool execution cancelled\"",
        rule="History stays valid",
        scenario=Scenario("cancelled between question and answer", cancelled_then_answered(_asks, {}), (_answered,)),
        look=lambda trace: (trace.stops, texts(trace)[1:]),
        shows_there=(["interrupt", "cancelled"], []),
        shows_here=(["interrupt", "cancelled"], ["Tool execution cancelled"]),
        hides=("messages", "seen"),
    ),
    Difference(
        name="a-cancelled-turn-calls-no-model",
        there="an invocation that was cancelled before its model call calls the model and drops the answer",
        here="the model is not called",
        rule="what was cancelled should cost nothing",
        scenario=Scenario("cancelled before the prompt", lambda world: world.agent(script), prompts=(_cancel(), "go")),
        look=lambda trace: (trace.stops, len(trace.seen)),
        shows_there=(["None", "cancelled"], 1),
        shows_here=(["None", "cancelled"], 0),
        hides=("seen",),
    ),
    Difference(
        name="a-cancel-ends-the-questions",
        there="after a cancel between question and answer the agent still waits for answers to what is settled",
        here="the next prompt begins a new turn",
        rule="a turn ends",
        scenario=Scenario(
            "a prompt after a cancelled question", cancelled_then_answered(_asks, {}), (_answered,), ("go", "again")
        ),
        look=lambda trace: [stop.split(":")[0] for stop in trace.stops[2:]],
        shows_there=["TypeError"],
        shows_here=["interrupt"],
    ),
    Difference(
        name="no-direct-calls-inside",
        there="a hook may run a tool by `agent.tool.act(..., record_direct_tool_call=False)`",
        here="refused: nobody would be asked and nothing recorded; a step does what must happen",
        rule="An answer binds the call, not the code",
        scenario=Scenario("a hook calls a tool", _calls_from_a_hook),
        look=lambda trace: (notes(trace, "act"), trace.stops[0].split(":")[0]),
        shows_there=(["act(9)", "act(1)"], "end_turn"),
        shows_here=([], "PolicyViolationError"),
    ),
    Difference(
        name="a-direct-call-is-a-batch",
        there="a direct call does not fire BeforeToolsEvent and AfterToolsEvent: it runs whatever their hooks say",
        here="it fires them, as a batch of that one call; their refusal stands, and their question is an error",
        rule="a gate is never bypassed",
        scenario=Scenario(
            "a direct call that the batch hook refuses",
            _gated_batch,
            prompts=(Does(lambda agent: agent.tool.act(x=9, record_direct_tool_call=False)["status"]),),
        ),
        look=lambda trace: (notes(trace, "act"), trace.stops),
        shows_there=(["act(9)"], ["success"]),
        shows_here=([], ["error"]),
        hides=("log", "stops"),
    ),
)  # fmt: skip
