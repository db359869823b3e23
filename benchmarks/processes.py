"""Processes that are measured: started and ended here, their CPU time and memory read from the kernel (Linux)."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from countersign.agent_client.dev_server import leashed

ROOT = Path(__file__).resolve().parent.parent
READY_S = 60.0


def cpu_ms(pid: int) -> float:
    """CPU time that a process has used so far, all threads, in ms.

    Every process has a CPU clock, whose number is made from its id: see clock_getcpuclockid(3). It
    counts nanoseconds, /proc/<pid>/stat only hundredths of a second.
    """
    return time.clock_gettime((~pid << 3) | 2) * 1000


def memory_mb(pid: int) -> float:
    """Resident memory of a process, in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class WorkerProcess:
    """A worker, started as `python <arguments>` from the repository's root.

    Args:
        arguments: Of Python.
        environment: Variables beside those of this process.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._arguments = list(arguments)
        self._environment = {**os.environ, **environment}
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            RuntimeError: If it does not run.
        """
        if self._process is None:
            raise RuntimeError("the worker does not run; await start() first")
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it says on stderr that it is ready.

        Raises:
            RuntimeError: If it ends at once, with what it said.
            TimeoutError: If it does not get ready.
        """
        self._process = await asyncio.create_subprocess_exec(
            *leashed(sys.executable, *self._arguments),
            cwd=ROOT,
            env=self._environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        stream = self._process.stderr
        assert stream is not None
        said = b""
        async with asyncio.timeout(READY_S):
            while b"worker ready" not in said:
                line = await stream.readline()
                if not line:
                    raise RuntimeError(f"the worker `python {' '.join(self._arguments)}` ended: {said.decode()}")
                said += line
        self._listening = asyncio.create_task(_forward(stream))

    async def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._gone()

    async def stop(self) -> None:
        """End it by SIGTERM, and by SIGKILL after five seconds."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), 5)
        except TimeoutError:
            self._process.kill()
        await self._gone()

    async def _gone(self) -> None:
        if self._process is not None:
            await self._process.wait()
        if self._listening is not None:
            self._listening.cancel()
        self._process = self._listening = None


async def _forward(stream: asyncio.StreamReader) -> None:
    """Show what a worker says while it is measured: a measurement with warnings is suspect."""
    async for line in stream:
        print(line.decode(errors="replace"), end="", file=sys.stderr, flush=True)
