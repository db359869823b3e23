"""Events, queries and updates that a worker meets together with sessions that it does not know yet."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import Replayer
from tests.durable.test_waiting import questions

from countersign.agent_client.errors import NoReplyError, NoWorkerError
from countersign.client import SessionHandle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.session import AgentSession

T = TypeVar("T")

SESSIONS = 16
"""Left alone, about one in seven breaks."""


async def until_event(client: Client, session_id: str, kind: "EventType.ValueType", after: int = 0) -> int:
    """Wait for an event of a session; its number."""
    async with asyncio.timeout(60):
        while True:
            async for event in client.get_workflow_handle(session_id).fetch_history_events():
                if event.event_type == kind and event.event_id > after:
                    return event.event_id
            await asyncio.sleep(0.1)


async def test_a_query_that_looks_ahead_does_not_spoil_the_history(lab, client):
    """A worker is lost, a cycle ends, somebody asks and somebody sends an update: what the next worker writes replays.

    The query may be the first thing that the next worker gets. To answer it, the SDK (1.35) applies the events that no
    workflow task has handled yet, and keeps the commands for the task to come, before those of the update; in a
    replay the update comes first. A session that was written like this could never be taken over again.
    """
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} held:a"

    async def running() -> SessionHandle:
        session = await lab.start(worker, "free", prompt, lifetime="open")
        started = await until_event(client, session.id, EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED)
        await until_event(client, session.id, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, started)
        return session

    sessions = await asyncio.gather(*(running() for _ in range(SESSIONS)))
    worker.kill()
    asking: list[asyncio.Task] = []

    async def disturb(number: int, session_id: str) -> None:
        handle = client.get_workflow_handle(session_id)
        await client.get_workflow_handle(f"{session_id}/cycle-1").terminate()
        asking.extend(asyncio.create_task(handle.query("status")) for _ in range(3))
        await asyncio.sleep(0.05 * number)
        asking.append(asyncio.create_task(handle.execute_update("invoke", {"turn": 1})))

    await asyncio.gather(*(disturb(number, session.id) for number, session in enumerate(sessions)))
    worker.start()
    replayer = Replayer(workflows=[AgentSession], interceptors=[IntakeGuard()], data_converter=client.data_converter)
    broken = []
    for session in sessions:
        await until_event(client, session.id, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED)
        history = await client.get_workflow_handle(session.id).fetch_history()
        result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
        if result.replay_failure is not None:
            broken.append(str(result.replay_failure)[:200])
    for task in asking:
        task.cancel()
    assert broken == []


async def test_a_session_uses_no_local_activity(lab, client):
    """An update in the task that brings the result of one is ordered otherwise by a replay (SDK 1.35).

    It takes a soak to see such a session break, so what led to it is kept out.
    """
    session = await lab.start(lab.worker(), "hitl", f"effects={lab.effects_file} effect:a")
    (question,) = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.result()
    history = await client.get_workflow_handle(session.id).fetch_history()
    markers = {event.marker_recorded_event_attributes.marker_name for event in history.events}
    assert "core_local_activity" not in markers and "core_patch" in markers


async def while_workers_die(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until a worker replies. A refusal is a reply."""
    while True:
        try:
            return await ask()
        except (NoReplyError, NoWorkerError):
            await asyncio.sleep(0.1)


async def test_answers_to_what_a_query_has_shown_are_taken(lab, client):
    """Clients answer each question as soon as a query shows it, by signal and by update, while workers are killed.

    A query shows what a cycle has asked one workflow task before the session has its outcome. An answer to that is
    one task early; it is looked at again when the cycle has ended, and no answer is lost.
    """
    worker = lab.worker()

    async def life(number: int) -> SessionHandle:
        labels = [f"s{number}-{n}" for n in range(4)]
        prompt = f"effects={lab.effects_file} " + " ".join(f"effect:{label}" for label in labels)
        session = await lab.start(worker, "hitl", prompt, lifetime="open")
        asked = await while_workers_die(lambda: questions(session, 4))
        send = session.respond if number % 2 else session.answer
        await asyncio.gather(*(while_workers_die(partial(send, (question.id, "y"))) for question in asked))
        return session

    async def settle(session: SessionHandle) -> None:
        for question in await while_workers_die(session.interrupts):
            if question.name == "unknown-outcome":  # a kill has cut the call
                done = question.calls[0].input["label"] in lab.effects()
                await session.answer((question.id, {"result": "done"} if done else "retry"))

    async def kills() -> None:
        for pause_s in (0.45, 0.5, 0.6):
            await asyncio.sleep(pause_s)
            await asyncio.to_thread(worker.restart)

    _, *sessions = await asyncio.gather(kills(), *(life(number) for number in range(8)))
    async with asyncio.timeout(90):
        while len(lab.effects()) < 32:
            await asyncio.gather(*(settle(session) for session in sessions))
            await asyncio.sleep(0.2)
    assert len(set(lab.effects())) == len(lab.effects()) == 32
