"""Encryption against a real server: what stands there in plain text, and a worker that lacks the key."""

import asyncio
import base64
import os
import subprocess
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
)
from temporalio.client import Client
from tests.durable.test_waiting import BIN, questions

from countersign.agent_core.errors import AnswerRefused
from countersign.client import AgentRunError, SessionUnreadableError

SECRET = "zebra-7f3a"

ANGRY = f'''
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import AfterToolCallEvent
from countersign.models import calls

@tool
def fails() -> str:
    """Fail."""
    raise ValueError("{SECRET} in a tool")

def raises(event: AfterToolCallEvent) -> None:
    raise RuntimeError("{SECRET} in a hook")

@durable("angry")
def angry() -> Agent:
    return Agent(model=ScriptedModel([calls(("fails", {{}})), "done"]), tools=[fails], hooks=[raises])
'''


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key file that workers and clients of this test use."""
    file = tmp_path / "keys"
    file.write_text(f"k1 {base64.b64encode(os.urandom(32)).decode()}\n")
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(file))
    return file


async def everything_on_the_server(client: Client, session_id: str) -> bytes:
    """All that the server has of a session and its cycles: histories, descriptions, the list; as it has them."""
    service, namespace = client.workflow_service, client.namespace
    query = f"WorkflowId STARTS_WITH '{session_id}'"
    while True:
        listed = await service.list_workflow_executions(ListWorkflowExecutionsRequest(namespace=namespace, query=query))
        if len(listed.executions) >= 2:  # the session and a cycle; lists lag behind
            break
        await asyncio.sleep(0.05)
    seen = listed.SerializeToString()
    for found in listed.executions:
        token = b""
        while True:
            page = await service.get_workflow_execution_history(
                GetWorkflowExecutionHistoryRequest(
                    namespace=namespace, execution=found.execution, next_page_token=token
                )
            )
            seen += page.SerializeToString()
            token = page.next_page_token
            if not token:
                break
        described = await service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(namespace=namespace, execution=found.execution)
        )
        seen += described.SerializeToString()
    return seen


async def test_nothing_that_the_key_hides_is_readable_on_the_server(lab, client, keys, monkeypatch):
    """Prompts, inputs, reasons, cards, answers, comments, results, errors: there, and in the store, all is cipher."""
    store = lab.folder / "store"
    monkeypatch.setenv("COUNTERSIGN_STORAGE", store.as_uri())
    lab.package("angry", agents=ANGRY)
    worker = lab.worker("lab.agents,angry.agents")
    agents = await lab.client(worker)
    prompt = f"{SECRET} effects={lab.folder}/{SECRET} effect:{SECRET} {os.urandom(40_000).hex(' ')}"
    session = await agents.start("per-call", prompt, session_id=f"hidden-{uuid.uuid4().hex[:8]}")
    [question] = await questions(session, 1)
    seen = await everything_on_the_server(client, session.id)
    with pytest.raises(AnswerRefused, match=f"no question has the id 'int-{SECRET}'"):
        await session.answer((f"int-{SECRET}", "y"))
    await session.answer((question.id, f"no: {SECRET}"), comment=f"because {SECRET}", responder=SECRET)
    assert SECRET in str((await session.result()).message), "the key opens it"
    failing = await agents.start("angry", "go", session_id=f"hidden-{uuid.uuid4().hex[:8]}")
    with pytest.raises(AgentRunError, match=SECRET):
        await failing.result()
    seen += await everything_on_the_server(client, session.id)
    seen += await everything_on_the_server(client, failing.id)
    blobs = [path.read_bytes() for path in store.rglob("*") if path.is_file()]
    assert sum(b"binary/encrypted" in blob for blob in blobs) >= len(blobs) - 1 > 0, "all but the worker's probe"
    seen += b"".join(blobs)
    assert b"binary/encrypted" in seen
    place = seen.find(SECRET.encode())
    assert place < 0, seen[max(0, place - 200) : place + 50]


async def test_a_worker_without_the_key_loses_nothing(lab, client, keys, monkeypatch):
    """It fails the session's tasks and names the key; a worker that has it finishes the session."""
    monkeypatch.delenv("COUNTERSIGN_ENCRYPTION_KEYS")
    ignorant = lab.worker()
    ignorant_client = await lab.client(ignorant)
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(keys))
    agents = await lab.client(ignorant)
    session = await agents.start("free", SECRET)
    assert "encrypted with key 'k1'" in await failed_task(client, session.id)
    with pytest.raises(SessionUnreadableError, match="COUNTERSIGN_ENCRYPTION_KEYS"):
        await ignorant_client.session(session.id).summary()
    ignorant.stop()
    lab.worker(queue=ignorant.queue)
    async with asyncio.timeout(60):
        assert SECRET in str((await session.result()).message)
    assert "COUNTERSIGN_ENCRYPTION_KEYS" in complaint("show", session.id, "--address", lab.address)


async def test_a_signal_that_was_taken_is_never_refused_by_a_worker_without_the_key(lab, client, keys, monkeypatch):
    """Keys came while the session waited. A worker left without them can't drop the answer that another one took."""
    monkeypatch.delenv("COUNTERSIGN_ENCRYPTION_KEYS")
    first = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a effect:b"
    session = await lab.start(first, "per-call", prompt, resume="all")
    one, other = await questions(session, 2)
    first.kill()
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(keys))
    second = lab.worker(queue=first.queue)
    knowing = (await lab.client(second)).session(session.id)
    await knowing.respond((one.id, "y"))
    await questions(knowing, 1)
    second.kill()
    monkeypatch.delenv("COUNTERSIGN_ENCRYPTION_KEYS")
    ignorant = lab.worker(queue=first.queue)
    await client.get_workflow_handle(session.id).signal("nonsense", 1)
    said = await failed_task(client, session.id)
    assert "a worker has taken this signal" in said and "key 'k1'" in said
    ignorant.kill()
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(keys))
    lab.worker(queue=first.queue)
    await knowing.answer((other.id, "y"))
    assert (await knowing.result()).stop_reason == "end_turn" and sorted(lab.effects()) == ["a", "b"]


async def test_a_signal_that_was_refused_stays_refused_once_the_key_is_there(lab, client, keys, monkeypatch):
    """All workers go by the refusal in the history; the person sends the answer again."""
    ciphering = await lab.client(lab.worker())
    monkeypatch.delenv("COUNTERSIGN_ENCRYPTION_KEYS")
    ignorant = lab.worker()
    session = await lab.start(ignorant, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    knowing = ciphering.session(session.id)
    await knowing.respond((question.id, "y"))
    await until(session.audit, lambda lines: any(line.event == "refused" for line in lines))
    assert lab.effects() == []
    ignorant.kill()
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(keys))
    lab.worker(queue=ignorant.queue)
    await knowing.answer((question.id, "y"))
    assert (await knowing.result()).stop_reason == "end_turn" and lab.effects() == ["a"]


async def until(look: Callable[[], Awaitable[Any]], satisfied: Callable[[Any], bool]) -> None:
    """Wait until what a look shows is right."""
    async with asyncio.timeout(60):
        while not satisfied(await look()):
            await asyncio.sleep(0.05)


def complaint(*words: str) -> str:
    """What the command says where no key is; one line."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    command = [str(BIN / "countersign"), *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 1, ended.stderr
    return ended.stderr


async def failed_task(client: Client, session_id: str) -> str:
    """What the first failed workflow task of a session says; waits for it."""
    async with asyncio.timeout(60):
        while True:
            async for event in client.get_workflow_handle(session_id).fetch_history_events():
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                    return event.workflow_task_failed_event_attributes.failure.message
            await asyncio.sleep(0.05)
