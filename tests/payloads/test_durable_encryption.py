"""Encryption against a real server: what stands there in plain text, and a worker that lacks the key."""

import asyncio
import base64
import os
import subprocess
import uuid
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
    ListWorkflowExecutionsRequest,
)
from temporalio.client import Client
from tests.durable.test_waiting import BIN, questions

from countersign.agent_client import AgentRunError
from countersign.agent_client.payloads.errors import DecryptionError
from countersign.agent_core.errors import AnswerRefused

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
    blobs = [path.read_bytes() for path in store.glob("*/*")]
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
    with pytest.raises(DecryptionError, match="COUNTERSIGN_ENCRYPTION_KEYS"):
        await ignorant_client.session(session.id).summary()
    ignorant.stop()
    lab.worker(queue=ignorant.queue)
    async with asyncio.timeout(60):
        assert SECRET in str((await session.result()).message)
    assert "COUNTERSIGN_ENCRYPTION_KEYS" in complaint("show", session.id, "--address", lab.address)


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
