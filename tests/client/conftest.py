"""A worker process for the tests that talk to real sessions."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from countersign.agent_client import AgentClient

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def served_queue(temporal_server, tmp_path_factory):
    """A task queue that a worker process serves with `served_agents`."""
    queue = f"client-tests-{uuid.uuid4().hex[:8]}"
    log = tmp_path_factory.mktemp("worker") / "log"
    command = [sys.executable, "worker.py", "--agents", "tests.client.served_agents", "--address", temporal_server]
    with log.open("w") as out:
        worker = subprocess.Popen([*command, "--task-queue", queue], cwd=ROOT, stdout=out, stderr=out)
    yield queue
    worker.terminate()
    worker.wait(30)


@pytest.fixture
async def served(temporal_server, served_queue):
    """An agent client whose sessions the worker serves."""
    return await AgentClient.connect(temporal_server, task_queue=served_queue)
