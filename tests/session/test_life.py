"""How long a session lives, what it shows when it ends, and whose work it takes over."""

import asyncio
import uuid

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from tests.durable.test_waiting import questions

from countersign.agent_core.session.turns import LOST_CYCLES
from countersign.workflows.cycle import HANDOVER_CYCLES


async def ended(handle, seconds: float):
    """How a workflow ended; the test fails if it does not in time."""
    async with asyncio.timeout(seconds):
        while (status := (await handle.describe()).status) is WorkflowExecutionStatus.RUNNING:
            await asyncio.sleep(0.1)
    return status


async def accepted(handle) -> bool:
    """True once an update has entered the history."""
    kind = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    return any([event.event_type == kind async for event in handle.fetch_history_events()])


async def test_refused_signals_do_not_keep_an_idle_session_alive(lab, client):
    """The idle time runs from when the session went idle; noise does not start it anew, nor do new runs."""
    worker = lab.worker()
    session = await lab.start(worker, "free", None, lifetime="open", idle_timeout_s=2, continue_after_events=8)
    handle = client.get_workflow_handle(session.id)

    async def noise():
        while True:
            await handle.signal("nonsense", 1)
            await asyncio.sleep(0.4)

    making = asyncio.create_task(noise())
    try:
        assert await ended(handle, 60) is WorkflowExecutionStatus.COMPLETED
    finally:
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)


async def test_a_cancelled_session_shows_as_closed_and_its_invokes_return(lab, client):
    """Nobody waits for a cancelled session, and no list shows it as idle."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:b", lifetime="open")
    handle = client.get_workflow_handle(session.id)
    waiting = asyncio.create_task(handle.execute_update("invoke", {"turn": 1}))
    async with asyncio.timeout(60):
        while "b-began" not in lab.effects():
            await asyncio.sleep(0.05)
    async with asyncio.timeout(60):
        while not await accepted(handle):
            await asyncio.sleep(0.05)
    await handle.cancel()
    result = await waiting
    assert (result["turn"], result["stop_reason"]) == (1, "cancelled")
    assert await ended(handle, 60) is WorkflowExecutionStatus.CANCELED
    assert (await handle.query("status"))["status"] == "closed"


async def test_a_cycle_of_an_earlier_session_is_not_taken_over(lab, client):
    """If the id of a cycle is taken, its history is somebody else's: it is not read, and the prompt runs again."""
    worker = lab.worker()
    session_id = f"again-{uuid.uuid4().hex[:8]}"
    squatter = await client.start_workflow("AgentCycle", id=f"{session_id}/cycle-1", task_queue="nobody")
    argument = {"protocol": 1, "agent": "free", "prompt": f"effects={lab.effects_file} effect:a"}
    handle = await client.start_workflow("AgentSession", argument, id=session_id, task_queue=worker.queue)
    async with asyncio.timeout(60):
        assert (await handle.result())["stop_reason"] == "end_turn"
    await squatter.terminate()
    assert lab.effects() == ["a"]
    assert any(line["event"] == "cycle_failed" for line in await handle.query("audit"))
    asked = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in handle.fetch_history_events()
    ]
    assert "countersign.read_cycle" not in asked


async def test_questions_stay_answerable_beside_a_busy_start(lab):
    """A session that is asked the plain way still works: the checks at its start refuse nothing good."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a", idle_timeout_s=3_000_000_000)
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert lab.effects() == ["a"]


def test_more_cycle_numbers_are_skipped_than_one_workflow_uses():
    """A cycle whose history can't be read may have used up to that many numbers."""
    assert LOST_CYCLES > HANDOVER_CYCLES


HOARDER = '''
from countersign import Agent, ScriptedModel, durable
from countersign.hooks import AfterInvocationEvent


def hoard(event: AfterInvocationEvent) -> None:
    event.agent.state.set("notes", "x" * 950_000)


@durable("hoarder")
def hoarder() -> Agent:
    """Keeps a lot in its state."""
    return Agent(ScriptedModel(lambda scene: scene.prompt), hooks=[hoard])
'''


async def test_a_session_of_a_large_state_is_continued_as_new(lab):
    """No history grows without end because the state stands in the last result, too; the result has it all the same."""
    lab.package("hoarder", agents=HOARDER)
    worker = lab.worker("hoarder.agents")
    session = await lab.start(worker, "hoarder", "one", lifetime="open", continue_after_events=8)
    async with asyncio.timeout(60):
        while True:
            begun = (await lab.history_of(session.id)).events[0].workflow_execution_started_event_attributes
            if begun.continued_execution_run_id:
                break
            await asyncio.sleep(0.2)
    status = await session.status()
    assert (status["status"], status["turn"], status["stop_reason"]) == ("idle", 1, "end_turn")
    worker.restart()
    result = await session.invoke("two")
    assert (result.turn, len(result.state["notes"])) == (2, 950_000)
    await session.close()
    assert len((await session.result()).state["notes"]) == 950_000
