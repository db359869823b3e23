"""A real Temporal server for the whole run, and worker processes that tests may kill."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, settings
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.agent_client.dev_server import DevServer
from countersign.client import AgentClient, SessionHandle

ROOT = Path(__file__).parents[1]
READY = "countersign worker ready"
READY_S = 60

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")  # how long an example takes is no property of ours


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Captured output may hold lone surrogates, which can't be sent from one test process to another."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[str]:
    """Address of a dev server."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(DevServer()) as server:
        yield server.address


@pytest.fixture
async def client(temporal_server: str) -> Client:
    """A Temporal client as our workers use it."""
    return await Client.connect(temporal_server, data_converter=pydantic_data_converter)


class WorkerProcess:
    """A worker in a process of its own, on a task queue of its own.

    Args:
        address: The server.
        agents: Agent modules.
        folder: Put on the worker's path, and where its log goes.
        queue: The task queue; a new one if None.
    """

    def __init__(self, address: str, agents: str, folder: Path, queue: str | None = None, *flags: str) -> None:
        self.address, self.agents, self.folder = address, agents, folder
        self.queue = queue or f"q-{uuid.uuid4().hex[:10]}"
        self.flags = flags
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"worker-{self.queue}.log"

    def start(self) -> "WorkerProcess":
        """Start it and wait until it polls."""
        path = os.pathsep.join([str(self.folder), str(ROOT), str(ROOT / "tests" / "durable")])
        command = [sys.executable, "-m", "countersign.worker", "--agents", self.agents, "--address", self.address]
        with self.log.open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [*command, "--task-queue", self.queue, "--graceful-shutdown-s", "2", *self.flags],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
                stderr=log,
                stdout=log,
            )
        deadline = time.monotonic() + READY_S
        while READY not in self.said(begin):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the worker did not get ready:\n{self.said(begin)}")
            time.sleep(0.02)
        return self

    def said(self, begin: int = 0) -> str:
        """What it wrote to its log."""
        return self.log.read_bytes()[begin:].decode()

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)
        self.process = None

    def restart(self) -> None:
        """SIGKILL and a new process on the same queue."""
        self.kill()
        self.start()


class Lab:
    """One test's server, worker and client."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.workers: list[WorkerProcess] = []
        self.effects_file = folder / "effects.log"

    def worker(self, agents: str = "lab.agents", queue: str | None = None, *flags: str) -> WorkerProcess:
        """Start a worker."""
        worker = WorkerProcess(self.address, agents, self.folder, queue, *flags)
        self.workers.append(worker)  # before it starts: one that does not get ready must end, too
        return worker.start()

    async def client(self, worker: WorkerProcess) -> AgentClient:
        """A client whose sessions that worker serves."""
        return await AgentClient.connect(self.address, task_queue=worker.queue)

    async def start(self, worker: WorkerProcess, agent: str, prompt: object, **options: object) -> SessionHandle:
        """Start a session as any language would: by the wire contract, with any option."""
        temporal = await Client.connect(self.address, data_converter=pydantic_data_converter)
        session_id = f"{agent}-{uuid.uuid4().hex[:8]}"
        argument = {"protocol": 1, "agent": agent, "prompt": prompt, **options}
        await temporal.start_workflow("AgentSession", argument, id=session_id, task_queue=worker.queue)
        return (await self.client(worker)).session(session_id)

    async def history_of(self, workflow_id: str) -> WorkflowHistory:
        """The history of a workflow's latest run."""
        temporal = await Client.connect(self.address, data_converter=pydantic_data_converter)
        return await temporal.get_workflow_handle(workflow_id).fetch_history()

    def effects(self) -> list[str]:
        """What tools really did, in order."""
        return self.effects_file.read_text().split() if self.effects_file.exists() else []

    def let_go(self) -> None:
        """Let the tools end that run until then."""
        self.effects_file.with_name(f"{self.effects_file.name}.go").touch()

    def package(self, name: str, **modules: str) -> None:
        """Write an agent package into the worker's path."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(source)


@pytest.fixture
async def lab(temporal_server: str, tmp_path: Path) -> AsyncIterator[Lab]:
    """A place for durable tests; its workers are ended with the test."""
    found = Lab(temporal_server, tmp_path)
    yield found
    for worker in found.workers:
        worker.kill()
