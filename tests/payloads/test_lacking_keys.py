"""A key that was taken from the workers too early: every command says so, and what to do."""

import asyncio
import base64
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from temporalio.service import RPCError, RPCStatusCode
from tests.conftest import ROOT, Lab
from tests.durable.test_waiting import BIN, questions
from tests.payloads.test_durable_encryption import failed_task

from countersign.agent_client.replay_findings import failed
from countersign.agent_client.translation import translated
from countersign.agent_client.worker_faults import LACKING
from countersign.client import AgentClient, NoWorkerError, SessionHandle, SessionUnreadableError
from countersign.workflows.intake import NotReadAgainError

FAILED_PRECONDITION = RPCStatusCode.FAILED_PRECONDITION
LACKS = "its worker lacks a key or a store that it needs"


@pytest.fixture
async def left(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionHandle:
    """A session of key k1 whose worker has k2 only; whoever looks has both."""
    keys = {name: f"{name} {base64.b64encode(os.urandom(32)).decode()}\n" for name in ("k1", "k2")}
    for name, text in {"old": keys["k1"], "new": keys["k2"], "both": keys["k2"] + keys["k1"]}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "old"))
    worker = lab.worker()
    agents = await lab.client(worker)
    session = await agents.start("per-call", f"effects={lab.effects_file} effect:a")
    await questions(session, 1)
    worker.stop()
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "new"))
    lab.worker(queue=worker.queue)
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "both"))
    return (await lab.client(worker)).session(session.id)


async def said(lab: Lab, *words: str, keys: str = "both") -> tuple[int, str]:
    """Exit code and whole output of the command."""
    path = os.pathsep.join([str(lab.folder), str(ROOT), str(ROOT / "tests" / "durable")])
    environment = {**os.environ, "PYTHONPATH": path, "COUNTERSIGN_ENCRYPTION_KEYS": str(lab.folder / keys)}
    command = [str(BIN / "countersign"), *words, "--address", lab.address]
    run = partial(subprocess.run, command, cwd=lab.folder, env=environment, capture_output=True, text=True, timeout=120)
    ended = await asyncio.to_thread(run, check=False)
    return ended.returncode, ended.stdout + ended.stderr


async def test_every_command_names_the_key_that_the_worker_lacks(lab, left):
    """Not "Encoded failure": whoever has both keys reads what the worker said, and what to do."""
    queue = (await left.summary()).task_queue
    for code, *words in (
        (3, "approve", left.id),
        (0, "show", left.id),
        (0, "interrupts", left.id),
        (1, "doctor", "--task-queue", queue),
        (3, "stop", left.id),
    ):
        got, text = await said(lab, *words)
        assert (got, "Encoded failure" in text) == (code, False), text
        assert f"{LACKS} (a payload is encrypted with key 'k1': " in text
        assert "give the worker that key or store (COUNTERSIGN_ENCRYPTION_KEYS" in text


async def test_doctor_asks_an_old_session_too(lab, client, left):
    """New sessions are of the new key, and all is well with them."""
    queue = (await left.summary()).task_queue
    agents = await AgentClient.connect(lab.address, task_queue=queue)
    await questions(await agents.start("per-call", f"effects={lab.effects_file} effect:b"), 1)
    query = f"TaskQueue = '{queue}' AND WorkflowType = 'AgentSession'"
    async with asyncio.timeout(60):  # the list of sessions follows after a moment
        while (await client.count_workflows(query)).count < 2:
            await asyncio.sleep(0.1)
    _, text = await said(lab, "doctor", "--task-queue", queue)
    assert f"session '{left.id}' can't be asked: {LACKS}" in text


async def test_whoever_lacks_the_keys_of_the_worker_is_pointed_to_its_log(lab, left):
    """The type of the failure is in the clear, its words are not."""
    (lab.folder / "old-only").write_text((lab.folder / "old").read_text())
    _, text = await said(lab, "approve", left.id, keys="old-only")
    assert f"{LACKS} (the worker's log names it)" in text


async def test_a_task_that_fails_for_want_of_a_key_is_not_blamed_on_the_code(client, lab, left):
    """Its failure is looked up in the history, once the server asks the worker no more."""
    await left.stop()
    await failed_task(client, left.id)
    refused = RPCError("Cannot query workflow due to Workflow Task in failed state.", FAILED_PRECONDITION, b"")
    told = await translated(refused, left._temporal, left.id)
    assert isinstance(told, NoWorkerError)
    assert f"{LACKS} (a payload is encrypted with key 'k1'" in str(told)


async def test_a_replay_without_the_key_says_that_it_lacks_it(lab, left):
    """It is no fault of the code, and no warning of Python's stands beside it."""
    words = ("replay", "--agents", "lab.agents", "--session", left.id)
    code, text = await said(lab, *words, keys="new")
    assert code == 1
    assert "this process lacks a key or a store that it needs: a payload is encrypted with key 'k1'" in text
    assert "code is corrected" not in text and "never awaited" not in text
    assert (await said(lab, *words))[0] == 0


async def test_a_command_whose_first_key_the_worker_lacks_is_told_so(lab, tmp_path, monkeypatch):
    """A new key goes to the workers first; a worker that has the session in memory can't say which key it lacks."""
    keys = [f"k{number} {base64.b64encode(os.urandom(32)).decode()}\n" for number in (1, 2)]
    (tmp_path / "old").write_text(keys[0])
    (tmp_path / "both").write_text(keys[1] + keys[0])
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "old"))
    session = await (await lab.client(lab.worker())).start("per-call", f"effects={lab.effects_file} effect:a")
    await questions(session, 1)
    code, text = await said(lab, "approve", session.id)
    assert code == 3
    assert f"{LACKS} (perhaps the key that this process encrypts with, the first one in its file)" in text


def test_a_signal_that_can_not_be_read_again_counts():
    """Its type is told by name, so that commands need not load workflows."""
    assert NotReadAgainError.__name__ in LACKING


def test_a_replay_that_fails_otherwise_is_blamed_on_the_code():
    """As a worker's task would be."""
    assert failed("boom", ["RuntimeError"]).kind == "replay-failed"
    assert failed("no blob", ["RuntimeError", "NotHereError"]).kind == "unreadable"


async def test_a_client_without_the_new_key_is_told_so_by_an_error_of_clients(lab, tmp_path, monkeypatch):
    """Step 2 of a new key, and a bot that was not restarted: whatever it asks or sends, it hears of the key."""
    line = {name: f"{name} {base64.b64encode(os.urandom(32)).decode()}\n" for name in ("k1", "k2")}
    (tmp_path / "old").write_text(line["k1"])
    (tmp_path / "both").write_text(line["k2"] + line["k1"])
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "both"))
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a"
    session = await (await lab.client(worker)).start("per-call", prompt)
    [question] = await session.wait_for_questions()
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "old"))
    bot = await lab.client(worker)
    left = bot.session(session.id)
    asked = (left.audit, left.status, left.summary, left.interrupts, left.wait_for_questions, left.outcome)
    sent = partial(left.answer, (question.id, "y"), digest=question.digest)
    for ask in (*asked, sent, left.result):
        with pytest.raises(
            SessionUnreadableError, match=r"encrypted with key 'k2'.*holds only k1; add that key"
        ) as raised:
            await ask()
        assert "tried again" not in str(raised.value)
