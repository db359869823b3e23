"""Worker processes by the dozen: forked from one process that has imported everything, so that each starts at once."""

import asyncio
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.crash.points import Trap, set_trap

from countersign.agent_client.payloads import PayloadSettings
from countersign.agent_core.wire import WORKER_READY
from countersign.serving.settings import WorkerSettings
from countersign.worker import loaded, serve

AGENTS = "crashlab.agents"
AGENTS_PATH = Path(__file__).parent
EFFECTS_VARIABLE = "CRASH_EFFECTS"
READY_S = 60.0

_PR_SET_PDEATHSIG = 1
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload([__name__])


def store_in(folder: Path) -> PayloadSettings:
    """Where a run's large values go."""
    return PayloadSettings(storage=(folder / "values").as_uri())


@dataclass
class Worker:
    """A real worker in a process of its own.

    Attributes:
        address: The server.
        queue: Its task queue.
        folder: For its log, and large values.
        effects: The SQLite file that its tools write to.
        trap: Where it dies.
        name: Tells workers of one queue apart.
    """

    address: str
    queue: str
    folder: Path
    effects: Path
    trap: Trap | None = None
    name: str = ""
    process: BaseProcess | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / f"worker-{self.queue}{self.name}.log"

    async def start(self) -> None:
        """Start it; returns when it polls, or has died.

        Raises:
            AssertionError: If it does neither in time.
        """
        before = self.said().count(WORKER_READY)
        process = _forking.Process(target=_work, args=(self._command(), self.log, self.effects, self.trap), daemon=True)
        process.start()
        self.process = process
        give_up = time.monotonic() + READY_S
        while self.said().count(WORKER_READY) == before and self.alive:
            if time.monotonic() > give_up:
                raise AssertionError(f"the worker did not get ready:\n{self.said()[-3000:]}")
            await asyncio.sleep(0.02)

    def _command(self) -> list[str]:
        command = ["worker.py", "--agents", AGENTS, "--address", self.address, "--task-queue", self.queue]
        stored = ["--storage", str(store_in(self.folder).storage)]
        return [*command, *stored, "--sticky-timeout-s", "1", "--graceful-shutdown-s", "2"]

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.exitcode is None

    @property
    def rss_mb(self) -> float:
        """Its memory in megabytes, 0 if it does not run."""
        try:
            pages = int(Path(f"/proc/{self.process.pid if self.process else 0}/statm").read_text().split()[1])
        except (OSError, ValueError):
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def said(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        if self.process is not None and self.alive and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGKILL)
        await self.ended()

    async def ended(self) -> None:
        """Wait for its end."""
        while self.alive:
            await asyncio.sleep(0.02)


def _work(command: list[str], log: Path, effects: Path, trap: Trap | None) -> None:
    """What the forked process does: become a worker."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # not to outlive the tests
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ[EFFECTS_VARIABLE] = str(effects)
    sys.path.insert(0, str(AGENTS_PATH))
    if trap is not None:
        set_trap(trap)
    sys.argv = command
    settings = WorkerSettings(_cli_parse_args=command[1:])
    asyncio.run(serve(settings, loaded(settings.agents)))
