"""Bodies of tools in all their forms: a call that counts as run has run to its end."""

import asyncio
import functools
import time

import pytest
import strands
from tests.core.driving import reply, results

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.interrupts import call_digest
from countersign.agent_core.tools.execution import execute
from countersign.agent_core.wire import ToolCall
from countersign.models import calls
from countersign.types.tools import ToolContext


def logged(function):
    """A decorator as people write them, for functions of any kind."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def coroutine(log):
    async def act():
        await asyncio.sleep(0)
        log.append("ran")
        return "end"

    return act


def streaming(log):
    async def act():
        yield "progress"
        await asyncio.sleep(0)
        log.append("ran")
        yield "end"

    return act


def generator(log):
    def act():
        yield "progress"
        log.append("ran")
        yield "end"

    return act


def returning(log):
    def act():
        yield "progress"
        log.append("ran")
        return "end"

    return act


@pytest.mark.parametrize("wrap", [lambda function: function, logged])
@pytest.mark.parametrize("decorate", [tool, strands.tool])
@pytest.mark.parametrize("form", [coroutine, streaming, generator, returning])
def test_a_body_runs_to_its_end(form, decorate, wrap):
    """Whatever it returns first, under a decorator too; a generator's last value is the result."""
    log: list[str] = []
    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[decorate(wrap(form(log)))])
    agent("go")
    assert (results(agent), log) == ([("success", "end")], ["ran"])


async def test_a_wrapped_coroutine_runs_on_the_event_loop():
    """The decorator may block, in a thread; what it returns needs the loop of the others."""
    here = asyncio.get_running_loop()

    @tool
    @logged
    async def act() -> str:
        return str(asyncio.get_running_loop() is here)

    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[act])
    await agent.invoke_async("go")
    assert results(agent) == [("success", "True")]


def asks_while_streaming(log):
    @tool(context=True)
    async def act(tool_context: ToolContext):
        yield "progress"
        answer = tool_context.interrupt("sure?")
        log.append(answer)
        yield answer

    return act


def asks_in_a_generator(log):
    @tool(context=True)
    def act(tool_context: ToolContext):
        yield "progress"
        answer = tool_context.interrupt("sure?")
        log.append(answer)
        yield answer

    return act


def asks_under_a_decorator(log):
    @tool(context=True)
    @logged
    async def act(tool_context: ToolContext):
        answer = tool_context.interrupt("sure?")
        log.append(answer)
        return answer

    return act


@pytest.mark.parametrize("make", [asks_while_streaming, asks_in_a_generator, asks_under_a_decorator])
def test_a_body_of_any_form_may_ask(make):
    """It pauses, and goes on with the answer."""
    log = []
    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[make(log)])
    first = agent("go")
    assert (first.stop_reason, log) == ("interrupt", [])
    agent(reply(first, "y"))
    assert (results(agent), log) == ([("success", "y")], ["y"])


class Full(list[str]):
    """A log that takes nothing."""

    def append(self, item):
        raise OSError("disk full")


@pytest.mark.parametrize("form", [streaming, generator])
def test_a_generator_that_fails_is_an_error(form):
    """However much it has yielded by then."""
    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[tool(form(Full()))])
    agent("go")
    assert results(agent) == [("error", "Error: OSError - disk full")]


@pytest.mark.parametrize("wrapper", [lambda function: function, logged])
async def test_a_cancellation_reaches_a_streaming_body(wrapper):
    """As it reaches any async tool: the call is cancelled, and the body may clean up."""
    begun, log = asyncio.Event(), []

    @tool
    @wrapper
    async def act():
        try:
            yield "progress"
            begun.set()
            await asyncio.Event().wait()
        finally:
            log.append("cleaned up")

    async def here(function):
        return function()

    call = ToolCall(agent="a", session_id="s", cycle=1, index=0, tool="act", tool_use_id="t", input={},
                    digest=call_digest("act", {}), idempotency_key="k")  # fmt: skip
    running = asyncio.create_task(execute(act, call, in_thread=here, heartbeat=lambda: None, clock=time.monotonic))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert log == ["cleaned up"]
