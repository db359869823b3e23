"""What is recorded: short sessions that together take the paths of the workflows that a plain one has.

Not here: external storage, encryption, tools on queues of their own; tests/crash and tests/payloads replay those.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from tests.support.resetting import reset

from countersign.agent_client.answers import answer_block
from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.session.machine import QUEUED_PROMPTS
from countersign.client import AgentClient, SessionHandle

Scenario = Callable[[AgentClient, str], Awaitable[None]]


async def _answered(session: SessionHandle, answer: object) -> None:
    """Answer every question the same, to the end."""
    while questions := await session.wait_for_questions():
        await session.answer([(question.id, answer) for question in questions])


def _turn(agent: str, prompt: str, answer: object = "y", handover_after: timedelta | None = None) -> Scenario:
    async def play(client: AgentClient, session_id: str) -> None:
        session = await client.start(agent, prompt, session_id=session_id, handover_after=handover_after)
        await _answered(session, answer)

    return play


async def _signalled(client: AgentClient, session_id: str) -> None:
    """An answer by signal, after a signal that can't be used."""
    session = await client.start("per-call", "note:a", session_id=session_id)
    [question] = await session.wait_for_questions()
    await client.temporal.get_workflow_handle(session_id).signal("respond", "nonsense")
    await session.respond((question.id, "y"))
    await session.result()


async def _prompted_twice(client: AgentClient, session_id: str) -> None:
    """A session of one turn, and a second prompt that comes before its first task."""
    argument = {"protocol": 1, "agent": "free", "prompt": "note:a"}
    await client.temporal.start_workflow(
        "AgentSession", argument, id=session_id, task_queue=client.task_queue,
        start_signal="prompt", start_signal_args=["note:b"],
    )  # fmt: skip
    await client.session(session_id).result()


async def _open(client: AgentClient, session_id: str) -> None:
    """An open session: a prompt, another one by `invoke`, an answer by `invoke`, and `close`."""
    session = await client.start("per-call", "note:a", session_id=session_id, lifetime="open")
    await _answered_once(session)
    await session.invoke("note:b")
    [question] = await session.interrupts()
    await session.invoke((question.id, "y"))
    await session.close()
    await session.result()


async def _answered_once(session: SessionHandle) -> None:
    [question] = await session.wait_for_questions()
    await session.invoke((question.id, "n: not today"))


async def _expired(client: AgentClient, session_id: str) -> None:
    """A question whose time runs out."""
    session = await client.start("per-call", "note:a", session_id=session_id, deadline=timedelta(seconds=1))
    await session.result()


async def _stopped(client: AgentClient, session_id: str) -> None:
    """Stopped while it waits."""
    session = await client.start("per-call", "note:a", session_id=session_id)
    await session.wait_for_questions()
    await session.stop()
    await session.result()


async def _stopped_at_work(client: AgentClient, session_id: str) -> None:
    """Stopped while a tool runs: the cycle is told, and ends."""
    session = await client.start("free", "note:a linger:3", session_id=session_id)
    await _lingering(client, session_id)
    await session.stop()
    await session.result()


async def _stopped_in_thought(client: AgentClient, session_id: str) -> None:
    """Stopped while the model works: it is not waited for."""
    session = await client.start("pondering", "3", session_id=session_id)
    await _until_it_runs(client, session_id, "countersign.call_model")
    await session.stop()
    await session.result()


async def _going_on(client: AgentClient, session_id: str) -> None:
    """A hook that goes on by itself, and an `invoke` that waits for the end of that."""
    session = await client.start("going-on", "hello", session_id=session_id, lifetime="open")
    await session.invoke("hello again")
    await session.close()
    await session.result()


async def _faulty(client: AgentClient, session_id: str) -> None:
    """A turn that fails."""
    session = await client.start("faulty", "note:a", session_id=session_id)
    with contextlib.suppress(AgentRunError):
        await session.result()


async def _recovered(client: AgentClient, session_id: str) -> None:
    """A cycle that is terminated while a tool runs."""
    session = await client.start("free", "note:a linger:5", session_id=session_id)
    cycle = await _lingering(client, session_id)
    await cycle.terminate("recorded")
    await _answered(session, "skip")


async def _reset(client: AgentClient, session_id: str) -> None:
    """Reset to its first task while a tool runs: the cycle that is cut off is cancelled, and a person asked."""
    session = await client.start("free", "linger:5", session_id=session_id)
    await _lingering(client, session_id)
    await reset(client.temporal, session_id, 0)
    await _answered(session, "skip")
    await session.result()


async def _disturbed(client: AgentClient, session_id: str) -> None:
    """Signals: an early answer, more prompts than fit, an answer that is none, and two answers to one question."""
    session = await client.start("free", "linger:30", session_id=session_id, lifetime="open")
    cycle = await _lingering(client, session_id)
    await session.respond(("int-1-0-0123456789abcdef", "y"))
    for number in range(QUEUED_PROMPTS + 1):
        await session.prompt(f"note:{number}")
    await cycle.terminate("recorded")
    [question] = await session.wait_for_questions()
    await session.respond((question.id, "maybe"))
    await session.respond([answer_block(question.id, "skip", comment=said) for said in ("mine", "not mine")])
    await session.close()  # and with it the prompts that wait
    await session.result()


async def _lingering(client: AgentClient, session_id: str) -> WorkflowHandle[Any, Any]:
    """The first cycle, once all that it waits for is its slow tool."""
    return await _until_it_runs(client, session_id, "linger")


async def _until_it_runs(client: AgentClient, session_id: str, activity: str) -> WorkflowHandle[Any, Any]:
    """The first cycle, once all that it waits for is that activity."""
    cycle = client.temporal.get_workflow_handle(f"{session_id}/cycle-1")
    async with asyncio.timeout(60):
        while await _running(cycle) != [activity]:
            await asyncio.sleep(0.05)
    return cycle


async def _running(cycle: WorkflowHandle[Any, Any]) -> list[str]:
    """The activities that a cycle waits for."""
    try:
        seen = await cycle.describe()
    except RPCError:  # it has not begun
        return []
    return [found.activity_type.name for found in seen.raw_description.pending_activities]


async def _continued(client: AgentClient, session_id: str) -> None:
    """A session that continues as new, with what it holds."""
    options = {"lifetime": "open", "continue_after_events": 20}
    argument = {"protocol": 1, "agent": "per-call", "prompt": "note:a", **options}
    await client.temporal.start_workflow("AgentSession", argument, id=session_id, task_queue=client.task_queue)
    session = client.session(session_id)
    await _answered_once(session)
    await session.invoke("note:b")
    [question] = await session.interrupts()
    await session.invoke((question.id, "y"))
    await session.close()
    await session.result()


SCENARIOS: dict[str, Scenario] = {
    "batch": _turn("batch", "note:a note:b"),
    "per-call": _turn("per-call", "note:a note:b", "n"),
    "twice": _turn("free", "asks_twice:a note:b"),
    "stepping": _turn("stepping", "note:a note:b"),
    "hitl": _turn("hitl", "note:a note:b", "t"),
    "loop": _turn("loop", "5"),
    "loop-one-each": _turn("loop", "3", handover_after=timedelta(0)),
    "signalled": _signalled,
    "prompted-twice": _prompted_twice,
    "open": _open,
    "expired": _expired,
    "stopped": _stopped,
    "stopped-at-work": _stopped_at_work,
    "stopped-in-thought": _stopped_in_thought,
    "going-on": _going_on,
    "faulty": _faulty,
    "recovered": _recovered,
    "continued": _continued,
    "disturbed": _disturbed,
    "reset": _reset,
}
