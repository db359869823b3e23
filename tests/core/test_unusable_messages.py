"""Hooks that leave something else than messages: the turn fails by name, and the conversation stays one."""

import pytest
from tests.core.driving import acts, make
from tests.core.test_session import Driven

from countersign.agent_core.messages import shape_fault
from countersign.agent_core.wire import CycleOutcome
from countersign.hooks import AfterInvocationEvent, AfterToolCallEvent, BeforeInvocationEvent

NO_MESSAGES = [
    ["a"],
    [{"role": "user"}],
    [{"role": "user", "content": "hi"}],
    [{"role": "user", "content": None}],
    [{"role": "system", "content": [{"text": "x"}]}],
    [{"role": "user", "content": [{"text": "x"}], "metadata": 5}],
    [{"role": "user", "content": [{"x": object()}]}],
    [{"role": "user", "content": [{"text": "\ud800"}]}],
]


class Crossing(Driven):
    """A session whose outcomes travel as JSON, as they do on a worker."""

    def __init__(self, agent, **options):
        super().__init__(agent, **options)
        original = self.session.finish_cycle

        def finish(outcome, now):
            original(CycleOutcome.model_validate_json(outcome.model_dump_json()), now)

        self.session.finish_cycle = finish


def ended(*hooks, script=lambda scene: "said"):
    """The session after one turn."""
    it = Crossing(make([], script, hooks=hooks)).prompt().step()
    assert shape_fault(it.session.conversation()) is None
    assert it.valid()
    return it


@pytest.mark.parametrize("left", [*NO_MESSAGES, {"text": "hi"}, {"role": "user", "content": []}, 5])
def test_going_on_with_what_is_no_prompt(left):
    """`AfterInvocationEvent.resume`."""

    def more(event: AfterInvocationEvent):
        event.resume = left

    result = ended(more).session.result()
    assert (result.stop_reason, result.error.origin) == ("failed", "AfterInvocationEvent")
    assert "event.resume" in result.error.message


@pytest.mark.parametrize("left", [*NO_MESSAGES, {"text": "hi"}])
def test_beginning_with_what_are_no_messages(left):
    """`BeforeInvocationEvent.messages`."""

    def other(event: BeforeInvocationEvent):
        event.messages = left

    result = ended(other).session.result()
    assert (result.stop_reason, result.error.origin) == ("failed", "BeforeInvocationEvent")


@pytest.mark.parametrize("left", NO_MESSAGES)
def test_adding_what_is_no_message(left):
    """`agent.messages`, at the end of a turn; it is taken out again."""

    def add(event: AfterInvocationEvent):
        event.agent.messages.extend(left)

    it = ended(add)
    assert it.session.result().stop_reason == "failed"
    assert "agent.messages" in it.session.result().error.message
    assert [message["role"] for message in it.session.conversation()] == ["user", "assistant"]


def test_spoiling_the_last_message():
    """`event.result.message` is the message of the conversation."""

    def spoil(event: AfterInvocationEvent):
        event.result.message["content"] = 5

    assert ended(spoil).session.result().stop_reason == "failed"


def test_spoiling_the_message_with_the_results():
    """Each call still has a result, and none says that the call has not run."""

    def spoil(event: AfterInvocationEvent):
        dict.update(event.agent.messages[2], content="gone")

    def note(event: AfterToolCallEvent):
        pass

    it = ended(spoil, note, script=acts(1))
    assert it.session.result().stop_reason == "failed"
    assert it.result_texts() == ["The turn failed; what became of this call is not known."]
