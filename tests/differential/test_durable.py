"""A sample of the scenarios goes the same way on a worker as in this process."""

import asyncio
from typing import Any

from tests.differential.running import Scenario, Trace, arranged, levelled, play
from tests.differential.sdk import TRACE_KEY
from tests.differential.served import SAMPLE, build

from countersign.agent_client.errors import AgentRunError


class _Failed(Exception):
    """A turn failed; the error's own type lives in the worker."""


def finished(trace: Trace, messages: Any, state: dict[str, Any]) -> Trace:
    """The trace with what stands at the end."""
    trace.messages, trace.state = list(messages), dict(state)
    trace.log = arranged(trace.state.get(TRACE_KEY) or [], trace.messages)
    return levelled(trace)


async def here(scenario: Scenario) -> Trace:
    """In this process."""
    agent, trace = build(scenario), Trace()

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        result = await agent.invoke_async(prompt)
        if (output := result.structured_output) is not None:
            trace.outputs.append(output.model_dump(mode="json"))
        return result.stop_reason, list(result.interrupts or [])

    await play(scenario, invoke, trace)
    return finished(trace, agent.messages, agent.state.get())


async def on_a_worker(scenario: Scenario, session: Any, *, raw: bool = False) -> Trace:
    """In a session.

    Args:
        scenario: What to play.
        session: Where.
        raw: True to leave the trace as it is.
    """
    trace, state = Trace(), {}

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        nonlocal state
        try:
            result = await session.invoke(prompt)
        except AgentRunError as error:
            raise type(error.error_type, (_Failed,), {})(error.detail) from error
        state = result.state
        if result.structured_output is not None:
            trace.outputs.append(result.structured_output)
        return result.stop_reason, list(result.interrupts)

    await play(scenario, invoke, trace)
    messages = [message async for message in session.transcript()]
    await session.close()
    if raw:
        trace.messages, trace.state = messages, state
        return trace
    return finished(trace, messages, state)


async def test_a_worker_goes_the_same_way(lab):
    """Stops, errors, questions, the order of hooks and handlers, the conversation and the state are equal."""
    worker = lab.worker("tests.differential.served")
    places = asyncio.Semaphore(6)

    async def fault(name: str, scenario: Scenario) -> str | None:
        async with places:
            session = await lab.start(worker, name, None, lifetime="open")
            there = await on_a_worker(scenario, session)
        mine = await here(scenario)
        # The client's error carries no state, and the notes stand in the state.
        unknown = {"log", "state"} if there.raised else set()
        lines = [
            f"  {field}\n    here   {getattr(mine, field)}\n    worker {getattr(there, field)}"
            for field in mine.differs(there) - unknown
        ]
        return "\n".join([f"{name}: {scenario.name}", *lines]) if lines else None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fault(name, scenario)) for name, scenario in SAMPLE.items()]
    found = [task.result() for task in tasks if task.result()]
    assert not found, f"{len(found)} of {len(SAMPLE)}:\n" + "\n".join(found[:10])
