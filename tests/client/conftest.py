"""A worker process for the tests that talk to real sessions, and the command as they run it."""

import asyncio
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from temporalio.client import Client
from typer.testing import CliRunner, Result

from countersign.agent_client.cli import app
from countersign.client import AgentClient

ROOT = Path(__file__).parents[2]
READY_S = 60


@pytest.fixture(scope="session")
def served_queue(temporal_server, tmp_path_factory):
    """A task queue that a worker process serves with `served_agents`."""
    queue = f"client-tests-{uuid.uuid4().hex[:8]}"
    log = tmp_path_factory.mktemp("worker") / "log"
    command = [sys.executable, "worker.py", "--agents", "tests.client.served_agents", "--address", temporal_server]
    with log.open("w") as out:
        worker = subprocess.Popen([*command, "--task-queue", queue], cwd=ROOT, stdout=out, stderr=out)
    _wait_until_ready(log, worker)
    yield queue
    worker.terminate()
    worker.wait(30)


def _wait_until_ready(log: Path, worker: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + READY_S
    while "ready" not in log.read_text():
        assert worker.poll() is None and time.monotonic() < deadline_s, log.read_text()
        time.sleep(0.05)


@pytest.fixture
async def served(temporal_server, served_queue):
    """An agent client whose sessions the worker serves."""
    return await AgentClient.connect(temporal_server, task_queue=served_queue)


@pytest.fixture
async def unserved(temporal_server):
    """An agent client whose sessions no worker serves."""
    return await AgentClient.connect(temporal_server, task_queue=f"nobody-{uuid.uuid4().hex[:8]}")


class Shell:
    """Runs the command in this process, in a thread; one at a time, for its output is the process's own.

    Args:
        address: Of the Temporal server.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    async def __call__(self, *words: str, code: int = 0, given: str | None = None) -> Result:
        """Run it, with what is given on standard input, and check its exit code."""
        env = {"TEMPORAL_ADDRESS": self.address}
        got = await asyncio.to_thread(CliRunner().invoke, app, list(words), input=given, env=env)
        assert got.exit_code == code, got.output
        return got


@pytest.fixture
def shell(temporal_server):
    """The command, connected to the test server."""
    return Shell(temporal_server)


async def start_bare(temporal: Client, task_queue: str, memo: "dict[str, object]") -> str:
    """Start a session's workflow with a memo as a worker would have left it; its id."""
    session_id = f"bare-{uuid.uuid4().hex[:8]}"
    argument = {"protocol": 1, "agent": "janitor", "prompt": "clean up"}
    await temporal.start_workflow("AgentSession", argument, id=session_id, task_queue=task_queue, memo=memo)
    return session_id
