"""Attempts to break the cycle: calls lost, doubled or waiting for nobody."""

import asyncio

import pytest
from tests.core.driving import acts, make, results, valid

from countersign import Agent, ScriptedModel, tool
from countersign.errors import EventLoopException
from countersign.hooks import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from countersign.models import calls


@pytest.mark.parametrize("value", [None, "text", 7, {}, {"content": "text"}, {"content": [object()]}])
def test_a_hook_that_ruins_a_result_costs_no_other_result(value):
    """An unusable `event.result` fails the turn by name; what the tools returned stays in the conversation."""
    log = []

    @tool
    async def act(x: int = 0) -> int:
        """Act."""
        await asyncio.sleep(0.02 * x)
        log.append(x)
        return x

    def ruin(event: AfterToolCallEvent):
        if event.tool_use["input"]["x"] == 0:
            event.result = value

    agent = make(log, acts(0, 1), hooks=[ruin], tools=[act])
    with pytest.raises(EventLoopException, match="unusable"):
        agent("go")
    assert log == [0, 1]
    assert results(agent) == [("success", "0"), ("success", "1")]
    assert valid(agent)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_a_hook_that_exits_fails_its_turn_only(error):
    """`sys.exit` and its like in a hook are that hook's error; nothing around it ends."""

    def leave(event: BeforeToolCallEvent):
        raise error

    log = []
    agent = make(log, acts(0), hooks=[leave])
    with pytest.raises(EventLoopException):
        agent("go")
    assert log == [] and valid(agent)


def test_a_model_hook_that_always_retries_is_bounded():
    """A hook that cancels each model call and asks for a retry would never yield; it fails by name."""

    def cancel(event: BeforeModelCallEvent):
        event.cancel = "no"

    def again(event: AfterModelCallEvent):
        event.retry = True

    with pytest.raises(EventLoopException, match="retr"):
        make([], ["done"], hooks=[cancel, again])("go")


def test_a_tool_hook_that_always_retries_is_bounded():
    """A call that a hook repeats without end is stopped; its last result stays."""

    def again(event: AfterToolCallEvent):
        event.retry = True

    log = []
    agent = make(log, acts(1), hooks=[again])
    with pytest.raises(EventLoopException, match="retr"):
        agent("go")
    assert 1 < len(log) < 1000
    assert results(agent) == [("success", "1")] and valid(agent)


class Weird:
    def __str__(self):
        raise RuntimeError("no text")


class WeirdError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def deep(levels=5_000):
    value = []
    for _ in range(levels):
        value = [value]
    return value


WEIRD = {
    "text": Weird,
    "content": lambda: {"status": "success", "content": ["text"]},
    "status": lambda: {"status": ["x"], "content": []},
    "deep": deep,
    "long": lambda: 10**5000,
}


@pytest.mark.parametrize("kind", WEIRD)
def test_a_result_that_cannot_be_shown_is_a_result(kind):
    """Whatever a tool returns, its call has a result: it ran."""
    value = WEIRD[kind]()

    @tool
    def act() -> object:
        """Act."""
        return value

    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[act])
    assert agent("go").stop_reason == "end_turn"
    assert len(results(agent)) == 1


@pytest.mark.parametrize("error", [WeirdError(), asyncio.CancelledError()])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_an_error_that_cannot_be_shown_is_a_result(error, asynchronous):
    """Whatever a tool raises, its call has a result: it ran."""

    @tool(name="act")
    async def later():
        """Act."""
        raise error

    @tool(name="act")
    def now():
        """Act."""
        raise error

    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[later if asynchronous else now])
    assert agent("go").stop_reason == "end_turn"
    assert [status for status, _ in results(agent)] == ["error"]


async def test_a_cancelled_invocation_leaves_an_agent_that_works():
    """After a timeout around `invoke_async` the conversation is valid and the agent takes the next prompt."""

    @tool
    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(30)
        return "waited"

    agent = Agent(ScriptedModel([calls(("wait", {})), "done"]), tools=[wait])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.invoke_async("go"), 0.2)
    assert valid(agent)
    assert (await agent.invoke_async("again")).stop_reason == "end_turn"
    assert "may have run" in results(agent)[0][1]
