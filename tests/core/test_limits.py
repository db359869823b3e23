"""Limits cap one invocation, are checked before each model call, and survive a pause."""

import pytest
from tests.core.test_session import Driven

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core import wire
from countersign.agent_core.effects import current_effects
from countersign.hooks import AfterModelCallEvent
from countersign.models import calls
from countersign.types.agent import Limits
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def act() -> str:
    """Act."""
    return "acted"


def looping(**more) -> Agent:
    """An agent that asks for its tool for ever."""
    return Agent(model=ScriptedModel(lambda scene: calls(("act", {}))), tools=[act], **more)


@pytest.mark.parametrize(
    ("limits", "stop_reason"),
    [
        ({"turns": 3}, "limit_turns"),
        ({"total_tokens": 10}, "limit_total_tokens"),
        ({"output_tokens": 10}, "limit_output_tokens"),
    ],
)
def test_a_limit_stops_the_loop_by_name(limits, stop_reason):
    """The loop ends between two cycles, with its own stop reason and a complete conversation."""
    agent = looping()
    result = agent("go", limits=limits)
    assert result.stop_reason == stop_reason
    assert "toolResult" in agent.messages[-1]["content"][0]
    if "turns" in limits:
        assert result.metrics.cycle_count == limits["turns"]


def test_limits_are_those_that_travel():
    """What can be written is what is kept, and `Limits(...)` is a plain dict."""
    assert Limits.__annotations__.keys() == wire.Limits.model_fields.keys()
    assert looping()("go", limits=Limits(turns=1)).stop_reason == "limit_turns"


def test_a_limit_goes_on_counting_after_a_pause():
    """An answer does not start the count anew."""
    agent = looping(interventions=[HumanInTheLoop()])
    result = agent("go", limits={"turns": 2})
    answered = 0
    while result.stop_reason == "interrupt":
        answered += 1
        assert result.interrupts
        result = agent([{"interruptResponse": {"interruptId": result.interrupts[0].id, "response": "y"}}])
    assert (result.stop_reason, answered) == ("limit_turns", 2)


def discarding(**more) -> tuple[Agent, list[int]]:
    """An agent whose hook discards each answer of the model, and what counts its calls."""
    asked: list[int] = []

    def again(event: AfterModelCallEvent):
        asked.append(1)
        event.retry = len(asked) < 10

    return Agent(model=ScriptedModel(lambda scene: "no good"), hooks=[again], **more), asked


def test_a_limit_counts_for_the_calls_that_a_hook_asks_for():
    """A hook that discards answers does not spend more tokens than the caller allows."""
    agent, asked = discarding()
    result = agent("go", limits={"total_tokens": 1})
    assert (result.stop_reason, len(asked)) == ("limit_total_tokens", 1)
    assert [message["role"] for message in agent.messages] == ["user"]


def test_after_a_stop_no_hook_gets_another_model_call():
    """The turn ends with the call that ran when the stop came."""
    agent, asked = discarding()
    agent.hooks.add_callback(AfterModelCallEvent, lambda event: setattr(current_effects.get(), "stop_requested", True))
    it = Driven(agent).prompt().step()
    assert (it.session.result().stop_reason, len(asked)) == ("cancelled", 1)
    assert it.valid()
