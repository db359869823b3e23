"""The laboratory: one tuned server, a worker process for each contender, a client."""

import asyncio
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode

from benchmarks.marks import VARIABLE, Marks
from benchmarks.processes import WorkerProcess
from benchmarks.ways import Way
from countersign.agent_client.dev_server import DevServer

PATIENCE_S = 600.0
_NO_ANSWER = (RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE)


class Lab:
    """Use it as an async context manager.

    Args:
        ways: The contenders that are served.
        cached: How many workflows each worker keeps in memory.
        server: The server; one with our own settings if None.

    Attributes:
        client: Connected to the server.
        server: The server.
        marks: When tools began.
    """

    client: Client

    def __init__(self, ways: Iterable[Way], *, cached: int = 500, server: DevServer | None = None) -> None:
        self.server = server or DevServer(leash=True)
        self._folder = tempfile.TemporaryDirectory()
        self.marks = Marks(Path(self._folder.name, "marks"))
        environment = {VARIABLE: str(self.marks.path)}
        self._workers = {
            way.worker: WorkerProcess(way.command(self.server.address, cached), environment) for way in ways
        }

    def worker(self, way: Way) -> WorkerProcess:
        """The process that serves this contender."""
        return self._workers[way.worker]

    async def asked(self, way: Way, session_id: str) -> Any:
        """Wait until a session asks; returns its question."""
        return await until(lambda: way.asks(self.client, session_id))

    async def __aenter__(self) -> "Lab":
        await self.server.start()
        try:
            self.client = await Client.connect(self.server.address, data_converter=pydantic_data_converter)
            for worker in self._workers.values():
                await worker.start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._workers.values()))
        await self.server.stop()
        self._folder.cleanup()


def new_id() -> str:
    """An id for a session."""
    return f"bench-{uuid.uuid4().hex[:12]}"


async def until(condition: Callable[[], Awaitable[Any]], every_s: float = 0.02) -> Any:
    """Poll until a condition holds; returns what it returned.

    Args:
        condition: A question that the server or a worker that has much to do may leave unanswered.
        every_s: Pause between two tries.

    Raises:
        TimeoutError: If it does not hold within ten minutes.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                if found := await condition():
                    return found
            except RPCError as error:
                if error.status not in _NO_ANSWER:
                    raise
            await asyncio.sleep(every_s)
