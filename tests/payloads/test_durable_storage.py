"""Large values against a real server: what leaves the history, what stays, and what a lost blob costs."""

import asyncio
import os
import shutil

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.worker import Replayer
from tests.durable.test_waiting import questions
from tests.payloads.test_durable_encryption import failed_task

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.payloads.references import is_reference
from countersign.agent_core.deployment import load_agents
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner
from countersign.workflows.session import AgentSession

BULKY = '''
import os
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls

@tool
def bulk(size: int) -> str:
    """Return what does not compress well."""
    return os.urandom(size // 2).hex()

def ask(event: BeforeToolCallEvent) -> None:
    if event.interrupt("call") != "y":
        event.cancel_tool = "no"

def script(scene):
    return calls(("bulk", {"size": 50_000})) if len(scene.turn) == 1 else "done"

@durable("bulky")
def bulky() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[bulk], hooks=[ask])
'''


@pytest.fixture
def store(lab, monkeypatch):
    """A folder that workers and clients of this test store in."""
    folder = lab.folder / "store"
    monkeypatch.setenv("COUNTERSIGN_STORAGE", f"file://{folder}")
    lab.package("bulky", agents=BULKY)
    return folder


async def payloads_of(lab, workflow_id: str) -> list[Payload]:
    """Arguments and result of a workflow, as they stand in its history."""
    found: list[Payload] = []
    for event in (await lab.history_of(workflow_id)).events:
        found += event.workflow_execution_started_event_attributes.input.payloads
        found += event.workflow_execution_completed_event_attributes.result.payloads
        found += event.activity_task_completed_event_attributes.result.payloads
    return found


async def test_only_what_our_workers_read_leaves_the_history_early(lab, store):
    """A prompt of 60 KB stays readable for all; a cycle's input and a tool's result of 50 KB are stored."""
    worker = lab.worker("bulky.agents")
    agents = await lab.client(worker)
    session = await agents.start("bulky", os.urandom(30_000).hex())
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.result()
    assert not any(is_reference(payload) for payload in await payloads_of(lab, session.id))
    assert sum(is_reference(payload) for payload in await payloads_of(lab, f"{session.id}/cycle-2")) >= 2
    large = await agents.start("bulky", os.urandom(150_000).hex())
    await questions(large, 1)
    assert is_reference((await payloads_of(lab, large.id))[0]), "from 256 KB on, whoever reads it"


async def test_a_lost_blob_stops_its_session_until_it_is_restored(lab, store, client):
    """Another worker on the same store can't go on, says which blob, and finishes once it is back."""
    first = lab.worker("bulky.agents")
    session = await (await lab.client(first)).start("bulky", os.urandom(150_000).hex())
    [question] = await questions(session, 1)
    first.kill()
    shutil.move(store, store.with_name("elsewhere"))
    lab.worker("bulky.agents", first.queue)
    await client.get_workflow_handle(session.id).signal(
        "respond", [{"interruptResponse": {"interruptId": question.id, "response": "y"}}]
    )
    said = await failed_task(client, session.id)
    assert f"can't be read from file://{store}" in said
    shutil.copytree(store.with_name("elsewhere"), store, dirs_exist_ok=True)
    async with asyncio.timeout(60):
        assert (await session.result()).stop_reason == "end_turn"


async def test_histories_with_stored_values_replay(lab, store):
    """With the store they do; without it the error names the setting."""
    worker = lab.worker("bulky.agents")
    session = await (await lab.client(worker)).start("bulky", "go")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.result()
    agents = "tests.durable.lab.agents"  # sessions run no code of agents
    host.install(None, load_agents([agents]))
    for settings, outcome in ((PayloadSettings(), None), (PayloadSettings(storage=""), "COUNTERSIGN_STORAGE")):
        replayer = Replayer(
            workflows=[AgentSession, AgentCycle],
            workflow_runner=policed_runner([agents]),
            interceptors=[IntakeGuard()],
            data_converter=data_converter(settings, worker=True),
        )
        async with asyncio.timeout(60):
            result = await replayer.replay_workflow(await lab.history_of(session.id), raise_on_replay_failure=False)
        assert outcome in str(result.replay_failure) if outcome else result.replay_failure is None
