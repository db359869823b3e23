"""Hooks that rewrite the conversation while calls wait for their results: every call keeps its one result."""

import copy

import pytest
from tests.core.driving import acts, asking, make, reply, valid
from tests.core.test_session import Driven

from countersign.agent_core.messages import message_text, tool_uses, user_message
from countersign.agent_core.session import views
from countersign.errors import EventLoopException
from countersign.hooks import AfterToolCallEvent, BeforeInvocationEvent, BeforeToolsEvent, MessageAddedEvent


def clear(event: BeforeInvocationEvent):
    """Trims all there is, as a hook does that keeps conversations short."""
    event.agent.messages.clear()


def clear_and_deny(event: BeforeInvocationEvent):
    """Denies the resumption, too."""
    resumed = bool(event.agent.messages)
    event.agent.messages.clear()
    event.cancel = "not today" if resumed else False


def prepend(event: BeforeInvocationEvent):
    """Adds a message whenever the agent is invoked, on resume between a call and its results."""
    event.messages = [*(event.messages or []), user_message("by the way")]


def clear_late(event: AfterToolCallEvent):
    """Trims while the tools run."""
    event.agent.messages.clear()


@pytest.mark.parametrize("hook", [clear, clear_and_deny, prepend, clear_late])
def test_calls_have_their_results_right_behind_them(hook):
    """The model's message is put back if it must be, and what came between goes behind the results."""
    log = []
    agent = make(log, acts(1, 2), hooks=[asking, hook])
    result = agent(reply(agent("go"), "y", "n"))
    assert result.stop_reason == "end_turn" and valid(agent)
    assert log == ([] if hook is clear_and_deny else [1])
    assert [len(tool_uses(message)) for message in agent.messages if tool_uses(message)] == [2]


@pytest.mark.parametrize("failing", [BeforeToolsEvent, AfterToolCallEvent, MessageAddedEvent])
def test_a_hook_that_trims_and_one_that_fails_leave_a_valid_conversation(failing):
    """Wherever the failure comes: no call without its result, no result without its call."""
    resumed = []

    def fail(event):
        if resumed:
            raise RuntimeError("broken")

    for trimming in (clear, prepend):
        agent = make([], acts(1), hooks=[asking, trimming])
        agent.add_hook(fail, failing)
        first = agent("go")
        resumed.append(True)
        with pytest.raises(EventLoopException, match="broken"):
            agent(reply(first, "y"))
        assert valid(agent)
        resumed.clear()


def keep_one(event: BeforeInvocationEvent):
    """Trims all but the last message."""
    del event.agent.messages[:-1]


def keep_copies(event: BeforeInvocationEvent):
    """Puts equal messages in the place of all."""
    event.agent.messages[:] = copy.deepcopy(event.agent.messages)


@pytest.mark.parametrize("hook", [clear, keep_one, keep_copies])
def test_a_message_keeps_its_number_whatever_is_trimmed(hook):
    """Whoever reads the transcript from where they were misses nothing, and reads nothing twice."""
    it = Driven(make([], lambda scene: "done", hooks=[hook]))
    following, told = 0, []
    for text in ("one", "one", "two"):
        it.prompt(text).step()
        page = views.transcript(it.session, following)
        assert page["start"] == following and page["next"] is None
        told += [message_text(message) for message in page["messages"] if message["role"] == "user"]
        following = page["total"]
    assert told == ["one", "one", "two"] and following == 6
