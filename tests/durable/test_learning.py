"""What lists show of sessions that learn of their search attributes late."""

import asyncio
import uuid

from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.worker import Worker
from tests.durable.test_cold_updates import until_event
from tests.durable.test_waiting import questions

from countersign.agent_core.wire import (
    CYCLE_WORKFLOW,
    MEMO_QUESTIONS,
    SEARCH_ATTRIBUTES_ACTIVITY,
    SEARCH_PENDING,
    CycleInput,
    CycleOutcome,
    Pending,
    Question,
)
from countersign.client import AgentClient
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.session import AgentSession

BUSY_S = 14
"""Longer than a run that ends waits for what it asks about search attributes."""


async def test_a_session_of_a_busy_worker_is_found_by_its_attributes(lab, client):
    """It asks which attributes exist until a worker has time for it, and one that is closed meanwhile ends without."""
    worker = lab.worker("lab.agents", None, "--max-concurrent-activities", "1")
    busy = await lab.start(worker, "free", f"effects={lab.effects_file} slow:a:{BUSY_S}")
    async with asyncio.timeout(30):
        while "a-began" not in lab.effects():
            await asyncio.sleep(0.05)
    waiting = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:b")
    closed = await lab.start(worker, "free", None, lifetime="open")
    await closed.close()
    await closed.result()
    assert "a-ended" not in lab.effects()
    await questions(waiting, 1)
    async with asyncio.timeout(30):
        while True:
            described = await client.get_workflow_handle(waiting.id).describe()
            if described.raw_description.workflow_execution_info.search_attributes.indexed_fields.get(SEARCH_PENDING):
                break
            await asyncio.sleep(0.1)
    await busy.result()


@workflow.defn(name=CYCLE_WORKFLOW, sandboxed=False)
class Asking:
    """A cycle that asks about two calls; the one after it runs until it is stopped."""

    def __init__(self) -> None:
        self.stopped = False

    @workflow.signal
    def stop(self, _: object) -> None:
        """Let it end."""
        self.stopped = True

    @workflow.run
    async def run(self, given: dict[str, object], *conversation: object) -> CycleOutcome:
        """Ask, or go on."""
        cycle = CycleInput.model_validate(given)
        if cycle.pending is None:
            uses = [{"toolUse": {"toolUseId": f"t{n}", "name": "act", "input": {}}} for n in range(2)]
            message = {"role": "assistant", "content": uses}
            at = "2026-01-01T00:00:00+00:00"
            asked = [Question(id=f"q{n}", name="ok?", digest="", index=n, asked_at=at) for n in range(2)]
            pending = Pending(origin_cycle=1, message=message, questions=asked)
            messages = [*cycle.prompt, message]
            return CycleOutcome(stop_reason="interrupt", last_cycle=1, messages=messages, pending=pending)
        await workflow.wait_condition(lambda: self.stopped)
        return CycleOutcome(stop_reason="cancelled", last_cycle=2)


async def test_questions_that_were_answered_meanwhile_leave_the_memo(client):
    """No list shows a question for ever that was answered in the cycle in which the session learned."""
    learned, queue = asyncio.Event(), f"learning-{uuid.uuid4().hex[:8]}"

    @activity.defn(name=SEARCH_ATTRIBUTES_ACTIVITY)
    async def existing() -> list[str]:
        await learned.wait()
        return []

    async with Worker(
        client,
        task_queue=queue,
        workflows=[AgentSession, Asking],
        activities=[existing],
        interceptors=[IntakeGuard()],
    ):
        session = await AgentClient(client, task_queue=queue).start("any", "go", lifetime="open")
        first, second = await questions(session, 2)
        handle = client.get_workflow_handle(session.id)
        assert len((await (await handle.describe()).memo())[MEMO_QUESTIONS]) == 2
        await session.answer((first.id, "y"))
        async with asyncio.timeout(30):
            while (await session.status())["status"] != "running":
                await asyncio.sleep(0.02)
        await session.answer((second.id, "y"))
        learned.set()
        done = await until_event(client, session.id, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
        await until_event(client, session.id, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, done)
        assert not (await (await handle.describe()).memo()).get(MEMO_QUESTIONS)
        await session.stop()
        await session.close()
        await session.result()
