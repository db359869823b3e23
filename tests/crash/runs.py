"""One run of the matrix: a session, its worker, a trap, and what came of it."""

import asyncio
import contextlib
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client
from tests.crash.file_server import FileServer
from tests.crash.points import Trap
from tests.crash.processes import Worker, store_in
from tests.crash.reference import Effects, Operator, Report, begin, examine, patiently

from countersign.agent_client.payloads import data_converter

LONGEST_S = 180.0
"""A session that has not come to its end by then hangs."""


@dataclass
class Run:
    """What came of one run.

    Attributes:
        point: Where the worker or the server was to be killed; None for a clean run.
        met: The points that were met, if they were recorded.
        killed: Whether the point was reached.
        seconds: How long the session took.
        stored: How many values of it are in storage.
        report: What came of the session.
    """

    point: str | None
    met: list[str] = field(default_factory=list)
    killed: bool = False
    seconds: float = 0.0
    stored: int = 0
    report: Report = field(default_factory=Report)


async def worker_run(address: str, point: str | None, *, record: bool = False) -> Run:
    """Run the session once, its worker killed at a point; another worker takes its place.

    Args:
        address: The server.
        point: Where to kill it; None for nowhere.
        record: Whether to write down the points.
    """
    with _folder() as folder:
        trap = Trap(point, folder / "killed", folder / "points" if record else None)
        return await _run(address, folder, trap, None)


async def server_run(server: FileServer, point: str) -> Run:
    """Run the session once, the server killed at a point of the worker; it comes back with its database.

    Args:
        server: The server; nobody else uses it now.
        point: Where to kill it.
    """
    with _folder() as folder:
        return await _run(server.address, folder, Trap(point, folder / "killed", None, server.pid), server)


async def _run(address: str, folder: Path, trap: Trap, server: FileServer | None) -> Run:
    run, effects, began = Run(trap.at), Effects(folder / "effects.sqlite"), time.monotonic()
    queue = f"crash-{uuid.uuid4().hex[:10]}"
    worker = Worker(address, queue, folder, effects.path, trap)
    keeper = asyncio.create_task(_keep(worker, server))
    try:
        async with asyncio.timeout(LONGEST_S):
            client = await Client.connect(address, data_converter=data_converter(store_in(folder)))
            session = await begin(client, queue)
            await Operator(session, effects, run.report).work()
            run.seconds = time.monotonic() - began
            await patiently(lambda: examine(client, session, effects, run.report))
    except Exception as error:  # one run that goes wrong is a finding, not the end of the matrix
        run.report.faults.append(f"{type(error).__name__}: {error}; the worker said: {worker.said()[-1500:]}")
    finally:
        run.killed = trap.flag.exists()
        run.stored = len(list((folder / "values" / "sessions").glob("*/*/*")))
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        await worker.kill()
    if trap.record is not None and trap.record.exists():
        run.met = trap.record.read_text().splitlines()
    return run


async def _keep(worker: Worker, server: FileServer | None) -> None:
    """Start the worker, and whatever dies again."""
    await worker.start()
    while True:
        if not worker.alive:
            await worker.start()
        if server is not None and not server.alive:
            await server.restart()
        await asyncio.sleep(0.05)


@contextlib.contextmanager
def _folder():
    folder = Path(tempfile.mkdtemp(prefix="countersign-crash-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
