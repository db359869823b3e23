"""Says over HTTP whether the worker lives and whether it serves: /livez and /readyz.

Plain asyncio: two fixed answers to GET need no web framework, and answering on the very event loop that runs
the agents is what makes /livez mean something: a tool that blocks the loop makes it silent.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Literal

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from countersign.agent_client.workers import pollers
from countersign.agent_core.errors import CountersignError

CONNECTION_COUNTS_S = 5.0
"""The server is asked so often at most whether it answers, however often we are asked, in seconds."""

_RPC = timedelta(seconds=2)
_REFUSALS = {RPCStatusCode.NOT_FOUND, RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED}
"""The namespace is gone, or this worker's rights are."""

_REQUEST_S = 5.0
_REQUEST_BYTES = 8_192


class HealthError(CountersignError):
    """The health endpoint can't listen where it should."""


class Health:
    """What a worker process knows of its own health. It begins as "starting"."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._unseen: list[Worker] = []
        self._workers: list[Worker] = []
        self._draining = False
        self._connection: tuple[float, str | None] = (float("-inf"), None)

    def serving(self, client: Client, workers: Sequence[Worker]) -> None:
        """The workers have passed their self-test and were started."""
        self._client, self._workers, self._unseen = client, list(workers), list(workers)

    def drain(self) -> None:
        """The worker takes nothing new any more."""
        self._draining = True

    async def not_ready(self) -> str | None:
        """Why the worker does not serve; None if it does."""
        if self._draining:
            return "stopping: running tools finish, nothing new is taken"
        if self._client is None:
            return "starting"
        for worker in self._workers:
            if not worker.is_running:
                return f"the worker of task queue {worker.task_queue!r} does not run"
        return await self._not_connected(self._client) or await self._not_polling(self._client)

    async def _not_connected(self, client: Client) -> str | None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._connection[0] > CONNECTION_COUNTS_S:
            trouble = None
            try:
                await client.workflow_service.describe_namespace(
                    DescribeNamespaceRequest(namespace=client.namespace), timeout=_RPC
                )
            except RPCError as error:
                if error.status in _REFUSALS:
                    trouble = f"the Temporal server refuses this worker its namespace ({error.status.name})"
                elif error.status != RPCStatusCode.RESOURCE_EXHAUSTED:  # it answers, and has much to do
                    trouble = f"the Temporal server does not answer ({error.status.name})"
            self._connection = (now_s, trouble)
        return self._connection[1]

    async def _not_polling(self, client: Client) -> str | None:
        """Whether the server has seen each worker poll; once it has, it need not be asked again."""
        for worker in list(self._unseen):
            kind: Literal["workflow", "activity"] = "workflow" if worker.config().get("workflows") else "activity"
            try:
                seen = await pollers(client, worker.task_queue, kind)
            except RPCError:
                return None  # it answers, and does not say
            if all(poller.identity != client.identity for poller in seen):
                return f"the server has not seen a poll of task queue {worker.task_queue!r} yet"
            self._unseen.remove(worker)
        return None


@contextlib.asynccontextmanager
async def listening(health: Health, host: str, port: int) -> AsyncIterator[int]:
    """Answer probes while the body runs; yields the port.

    Args:
        health: What to answer from.
        host: Where to listen.
        port: 0 takes a free one.

    Raises:
        HealthError: If the port can't be had.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # a caller that goes away, or talks nonsense
            async with asyncio.timeout(_REQUEST_S):
                writer.write(await _response(health, await _request(reader)))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_REQUEST_BYTES)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HealthError(
            f"can't listen on {host}:{port} for health probes ({reason}); set --health-port or --health-host"
        ) from error
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> list[str]:
    """Method and path of a request; its headers are read and not used.

    Raises:
        ValueError: If a line is too long.
    """
    first = await reader.readline()
    while (await reader.readline()).strip():
        pass
    return first.decode("latin-1").split()[:2]


async def _response(health: Health, request: list[str]) -> bytes:
    method, path = request if len(request) == 2 else ("", "")
    status, said = 200, {"status": "ok"}
    if method not in ("GET", "HEAD"):
        status, said = 405, {"status": "send GET"}
    elif path.partition("?")[0] == "/readyz":
        reason = await health.not_ready()
        if reason is not None:
            status, said = 503, {"status": "not ready", "reason": reason}
    elif path.partition("?")[0] != "/livez":
        status, said = 404, {"status": "ask for /livez or /readyz"}
    body = json.dumps(said).encode() + b"\n"
    words = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}[status]
    head = f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + (b"" if method == "HEAD" else body)
