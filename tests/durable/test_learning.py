"""What lists show of sessions that learn of their search attributes late."""

import asyncio
import uuid
from typing import Any

from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.worker import Worker
from tests.durable.test_cold_updates import until_event
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import questions

from countersign.agent_core.wire import (
    CYCLE_WORKFLOW,
    MEMO_QUESTIONS,
    SEARCH_ATTRIBUTES_ACTIVITY,
    SEARCH_PENDING,
    SESSION_WORKFLOW,
    CycleInput,
    CycleOutcome,
    Pending,
    Question,
)
from countersign.client import AgentClient
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.session import AgentSession


async def test_a_session_of_a_busy_worker_is_found_by_its_attributes(lab, client):
    """It asks which attributes exist until a worker has time for it, and one that is closed meanwhile ends without."""
    worker = lab.worker("lab.agents", None, "--max-concurrent-activities", "1")
    busy = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    waiting = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:b")
    closed = await lab.start(worker, "free", None, lifetime="open")
    await closed.close()
    await closed.result()
    lab.let_go()
    await questions(waiting, 1)
    async with asyncio.timeout(60):
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
        async with asyncio.timeout(60):
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


@workflow.defn(name=CYCLE_WORKFLOW, sandboxed=False)
class Talking:
    """A cycle that ends its turn at once."""

    @workflow.run
    async def run(self, given: dict[str, object], *conversation: object) -> CycleOutcome:
        """Say yes."""
        cycle = CycleInput.model_validate(given)
        said = {"role": "assistant", "content": [{"text": "yes"}]}
        return CycleOutcome(stop_reason="end_turn", last_cycle=1, message=said, messages=[*cycle.prompt, said])


class Learner:
    """A worker that tells the first runs of a session of its search attributes, and later ones when it may.

    Args:
        client: Of the server.
        runs: How many it tells at once.
    """

    def __init__(self, client: Client, runs: int) -> None:
        self.may_learn, self.id, self._runs = asyncio.Event(), f"learning-{uuid.uuid4().hex[:8]}", runs
        self._client, self.handle = client, client.get_workflow_handle(self.id)
        self.session = AgentClient(client, task_queue=self.id).session(self.id)

    def worker(self) -> Worker:
        """The worker."""

        @activity.defn(name=SEARCH_ATTRIBUTES_ACTIVITY)
        async def existing() -> list[str]:
            self._runs -= 1
            if self._runs < 0:
                await self.may_learn.wait()
            return []

        return Worker(
            self._client,
            task_queue=self.id,
            workflows=[AgentSession, Talking],
            activities=[existing],
            interceptors=[IntakeGuard()],
        )

    async def start(self, prompt: str) -> str | None:
        """Start the session, which continues as new after each turn; its first run."""
        start = {"agent": "any", "prompt": prompt, "lifetime": "open", "continue_after_events": 1}
        begun = await self._client.start_workflow(SESSION_WORKFLOW, start, id=self.id, task_queue=self.id)
        return begun.first_execution_run_id

    async def turns(self, number: int) -> dict[str, Any]:
        """Wait until so many turns are over; the session's status."""
        async with asyncio.timeout(60):
            while True:
                status: dict[str, Any] = await self.handle.query("status")
                if status["turn"] >= number and status["status"] == "idle":
                    return status
                await asyncio.sleep(0.05)


LONG = "x" * 450_000


async def test_what_comes_while_a_run_is_about_to_end_does_not_make_it_too_large_to_go_on(client):
    """Prompts that no argument could hold beside the conversation keep the session in its run, and fail by name."""
    it = Learner(client, runs=3)
    async with it.worker():
        await it.start(LONG)
        for number in (1, 2):
            await it.turns(number)
            await it.session.prompt(LONG)
        await it.turns(3)
        await it.session.prompt("when this turn is over, its run has not learned")
        await until_event(client, it.id, EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED)
        await it.session.prompt(LONG)
        await it.session.prompt(LONG)
        it.may_learn.set()
        assert (await it.turns(6))["error"]["type"] == "PayloadTooLargeError"
        await it.handle.terminate()


async def test_a_run_that_gives_up_learning_ends_with_its_last_command(client):
    """What it shows for the last time comes before; the server refuses a task with anything behind, again and again."""
    it = Learner(client, runs=1)
    async with it.worker():
        first = await it.start("go")
        await it.turns(1)
        async with asyncio.timeout(60):
            while (second := (await it.handle.describe()).run_id) == first:
                await asyncio.sleep(0.05)
        await it.session.prompt("go on")
        async with asyncio.timeout(60):
            while (await it.handle.describe()).run_id == second:
                await asyncio.sleep(0.2)
        history = await client.get_workflow_handle(it.id, run_id=second).fetch_history()
        kinds = [event.event_type for event in history.events]
        assert kinds[-1] == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
        assert EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in kinds
        await it.handle.terminate()
