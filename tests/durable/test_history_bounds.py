"""Histories stay far from the size at which Temporal ends a workflow (50 MB), whatever comes in."""

from temporalio.client import WorkflowHandle
from tests.crash.histories import children_of, failed_tasks, runs_of
from tests.durable.test_intake import plain, signal
from tests.durable.test_waiting import until_status

TALKATIVE = '''
from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import calls

@tool
def count(number: int) -> int:
    """Count on."""
    return number + 1

def script(scene):
    done = len(scene.results("count"))
    return calls(("count", {"number": done})) if done < 19 else f"counted to {done}"

@durable("talkative")
def talkative() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[count])
'''

FAR_BYTES = 5_000_000
"""Half of what the server warns of."""


async def history_bytes(handle: WorkflowHandle) -> int:
    """What the server says that a history weighs."""
    return (await handle.describe()).raw_description.workflow_execution_info.history_size_bytes


async def test_a_session_that_huge_signals_have_filled_is_continued_as_new(lab, client):
    """30 MB came while no worker ran: all of it is refused, and the session goes on in a run that is small again."""
    worker = lab.worker()
    session = await lab.start(worker, "free", "hello", lifetime="open")
    await until_status(session, "idle")
    worker.kill()
    for _ in range(16):
        await signal(client, session.id, "respond", [plain("x" * 1_900_000)])
    worker.start()
    await session.invoke("hello again")
    assert len([line for line in await session.audit() if line.event == "refused"]) == 16
    assert len(await runs_of(client, session.id)) > 1
    assert await history_bytes(client.get_workflow_handle(session.id)) < 1_000_000
    assert await failed_tasks(client, session.id) == []
    await session.close()


async def test_cycles_that_share_a_workflow_part_when_its_history_has_grown(lab, client):
    """However fast they are: each model call holds the whole conversation, here half a megabyte of it."""
    lab.package("talking", agents=TALKATIVE)
    worker = lab.worker("talking.agents")
    session = await lab.start(worker, "talkative", "x" * 490_000, handover_after_s=3_600)
    assert (await session.result()).cycles == 20
    cycles = [child async for child, _ in children_of(client, session.id)]
    sizes = [await history_bytes(client.get_workflow_handle(name)) for name in (session.id, *cycles)]
    assert len(cycles) < 20
    assert max(sizes) < FAR_BYTES
