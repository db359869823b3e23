"""Sessions that are far larger than what Temporal takes at once: their conversation is in external storage."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from countersign.agent_client.client import AgentClient
from countersign.agent_core.messages import history_faults
from countersign.agent_core.wire import MAX_ARGUMENTS_BYTES

LONG_AGENTS = '''
"""Agents with large tool results that no compression makes small."""

import hashlib

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import AfterInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent
from countersign.models import calls

BYTES = 64_000


@tool(idempotent=True)
def fetch(number: int) -> str:
    """Fetch a large document.

    Args:
        number: Which one.
    """
    return f"document {number}: " + hashlib.shake_256(str(number).encode()).hexdigest(BYTES // 2)


def script(scene):
    done = sum("toolResult" in block for m in scene.messages for block in m["content"])
    return calls(("fetch", {"number": done})) if done < int(scene.prompt) else f"read {done} documents"


def seen(event: AfterInvocationEvent):
    event.agent.state.set("seen", len(event.agent.messages))


def every_tenth(event: BeforeToolCallEvent):
    if event.tool_use["input"]["number"] % 10 == 5 and event.interrupt("ok?") != "y":
        event.cancel_tool = "no"


def drop_oldest(event: AfterInvocationEvent):
    answers = [place for place, m in enumerate(event.agent.messages) if "toolResult" in m["content"][0]]
    del event.agent.messages[: answers[1] + 1]


def redact(event: BeforeModelCallEvent):
    event.agent.messages[0]["content"][0]["text"] = "short"


def lengths(scene):
    return calls(("fetch", {"number": scene.call})) if scene.call < 2 else str(len(str(scene.messages[0])))


@durable("redacting")
def redacting() -> Agent:
    return Agent(name="redacting", model=ScriptedModel(lengths), tools=[fetch], hooks=[redact])


@durable("reader")
def reader() -> Agent:
    return Agent(name="reader", model=ScriptedModel(script), tools=[fetch], hooks=[seen])


@durable("asker")
def asker() -> Agent:
    return Agent(name="asker", model=ScriptedModel(script), tools=[fetch], hooks=[seen, every_tenth])


@durable("forgetful")
def forgetful() -> Agent:
    return Agent(name="forgetful", model=ScriptedModel(script), tools=[fetch], hooks=[drop_oldest])
'''


@pytest.fixture
def worker(lab, tmp_path, monkeypatch):
    """A worker with a store; clients in this process and commands have the same one."""
    monkeypatch.setenv("COUNTERSIGN_STORAGE", f"file://{tmp_path / 'store'}")
    lab.package("reading", agents=LONG_AGENTS)
    return lab.worker("reading.agents")


async def conversation(session):
    """All messages, checked for a result of each call."""
    messages = [message async for message in session.transcript()]
    assert history_faults(messages) == []
    return messages


def documents(messages):
    """Which documents are in a conversation, in order."""
    texts = [
        block["toolResult"]["content"][0]["text"] for m in messages for block in m["content"] if "toolResult" in block
    ]
    return [int(text.split(":")[0].split()[1]) for text in texts]


async def test_a_session_of_many_times_the_limit_ends_although_its_worker_is_killed(lab, worker):
    """Every document is in the conversation once, hooks saw all of it, and no history grew with it."""
    client = await lab.client(worker)
    session = await client.start("reader", "50")
    while (await session.status())["cycle"] < 20:
        await asyncio.sleep(0.05)
    worker.restart()
    result = await session.result()
    messages = await conversation(session)
    assert documents(messages) == list(range(50))
    assert result.state == {"seen": 102}
    assert sum(len(str(message)) for message in messages) > 1.5 * MAX_ARGUMENTS_BYTES
    temporal = await Client.connect(lab.address)
    found = await listed(temporal, session.id)
    assert len(found) > 1  # the session and its cycles
    for run in found:
        described = await temporal.get_workflow_handle(run.id, run_id=run.run_id).describe()
        assert described.raw_description.workflow_execution_info.history_size_bytes < 1_000_000
    assert {run.status for run in found} == {WorkflowExecutionStatus.COMPLETED}


async def listed(temporal, session_id):
    """The workflows of a session that has ended, once the server's list says so."""
    async with asyncio.timeout(60):
        while True:
            found = [run async for run in temporal.list_workflows(f"WorkflowId STARTS_WITH '{session_id}'")]
            if found and all(run.status != WorkflowExecutionStatus.RUNNING for run in found):
                return found
            await asyncio.sleep(0.1)


async def test_questions_and_continue_as_new_in_a_long_session(lab, worker):
    """References are handed from run to run, and what waits shows what will run."""
    session = await lab.start(worker, "asker", "40", continue_after_events=40)
    for number in (5, 15, 25, 35):
        while not (questions := await session.interrupts()):
            await asyncio.sleep(0.05)
        assert questions[0].calls[0].input == {"number": number}
        if number == 15:
            worker.restart()
        await session.answer((questions[0].id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert documents(await conversation(session)) == list(range(40))


async def test_a_hook_that_drops_old_messages_keeps_the_references_of_the_others(lab, worker):
    """The next turn starts from what is left, whether in storage or not."""
    client = await lab.client(worker)
    session = await client.start("forgetful", "30", lifetime="open")
    while (await session.status())["status"] != "idle":
        await asyncio.sleep(0.05)
    assert documents(await conversation(session)) == list(range(2, 30))
    result = await session.invoke("30")
    assert "read 30 documents" in str(result.message)
    assert documents(await conversation(session)) == [*range(4, 30), 28, 29]


async def test_what_a_hook_redacts_in_its_place_does_not_reach_the_model(lab, worker):
    """In storage or not, on every later call, and the conversation keeps it that way."""
    client = await lab.client(worker)
    session = await client.start("redacting", "secret " * 20_000, handover_after=timedelta(0))
    result = await session.result()
    assert int(result.message["content"][0]["text"]) < 100
    assert (await conversation(session))[0]["content"] == [{"text": "short"}]


async def test_a_client_without_the_store_gets_a_clear_error(lab, worker, monkeypatch):
    """It names the store instead of showing half a conversation."""
    client = await lab.client(worker)
    session = await client.start("reader", "5")
    await session.result()
    monkeypatch.delenv("COUNTERSIGN_STORAGE")
    other = await AgentClient.connect(lab.address, task_queue=worker.queue)
    with pytest.raises(Exception, match="COUNTERSIGN_STORAGE"):
        await conversation(other.session(session.id))
