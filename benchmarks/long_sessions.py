"""What a long session costs: whether a cycle gets slower, histories larger, or a restart longer with its age.

python -m benchmarks.long_sessions

The session reads documents, one a cycle, and asks at the end. Then its worker is killed, a new one is started, and
the question is answered: that is how long the session needs to go on. Large values are in a folder.
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table
from temporalio.client import Client, WorkflowExecution

from benchmarks.processes import WorkerProcess, memory_mb
from countersign.agent_client.dev_server import DevServer
from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_core.wire import cycle_id
from countersign.client import AgentClient

SESSIONS = ((20, 64_000), (300, 64_000), (20, 2_000), (500, 2_000))
"""Cycles, and bytes of each result. The short ones are what the long ones are compared with."""


@dataclass(frozen=True)
class Figures:
    """Of one session.

    Attributes:
        first_ms: Time per cycle of the first tenth.
        last_ms: Of the last tenth.
        history_kb: The largest history of any workflow.
        last_history_kb: The history of the last whole chain of cycles.
        stored_mb: What is in storage.
        recovery_s: From the new worker's readiness and the answer to the end of the turn.
        worker_mb: The worker's memory when the session asks.
    """

    cycles: int
    result_bytes: int
    first_ms: float
    last_ms: float
    history_kb: float
    last_history_kb: float
    stored_mb: float
    recovery_s: float
    worker_mb: float


async def measure(cycles: int, size: int) -> Figures:
    """Run one session on a server and a worker of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = PayloadSettings(storage=f"file://{folder}")
        async with DevServer(leash=True) as server:
            arguments = ["-m", "countersign.worker", "--agents", "benchmarks.long_agent", "--address", server.address]
            worker = WorkerProcess(arguments, {"COUNTERSIGN_STORAGE": f"file://{folder}"})
            await worker.start()
            try:
                temporal = await Client.connect(server.address, data_converter=data_converter(settings))
                session = await AgentClient(temporal).start("long", f"{cycles} {size}")
                [question] = await session.wait_for_questions()
                memory = memory_mb(worker.pid)
                await worker.kill()
                await worker.start()
                answered = time.monotonic()
                await session.approve(question.id)
                await session.result()
                recovery_s = time.monotonic() - answered
                runs = await _runs(temporal, session.id)
            finally:
                await worker.stop()
        stored = _bytes_in(Path(folder))
    began = _beginnings(runs, session.id, cycles)
    tenth = cycles // 10
    sizes = {run.id: run.raw_info.history_size_bytes for run in runs}
    chains = [run for run in runs if run.history_length > 200] or runs
    return Figures(
        cycles,
        size,
        (_at(began, 1 + tenth) - _at(began, 1)) / tenth * 1000,
        (_at(began, 1 + cycles) - _at(began, 1 + cycles - tenth)) / tenth * 1000,
        max(sizes.values()) / 1000,
        max(chains, key=lambda run: run.start_time).raw_info.history_size_bytes / 1000,
        stored / 1e6,
        recovery_s,
        memory,
    )


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def _runs(temporal: Client, session_id: str) -> list[WorkflowExecution]:
    """All workflows of a session; waits until the server lists the last one."""
    async with asyncio.timeout(30):
        while True:
            found = [run async for run in temporal.list_workflows(f"WorkflowId STARTS_WITH '{session_id}'")]
            if found and all(run.close_time is not None for run in found):
                return found
            await asyncio.sleep(0.2)


def _beginnings(runs: list[WorkflowExecution], session_id: str, cycles: int) -> list[tuple[int, float]]:
    """When cycles began, for those that began a workflow; and the end of the last one."""
    prefix = cycle_id(session_id, 0)[:-1]
    found = [(int(run.id.removeprefix(prefix)), run) for run in runs if run.id.startswith(prefix)]
    found.sort(key=lambda item: item[0])
    known = [(number, run.start_time.timestamp()) for number, run in found if number <= cycles + 1]
    last = max(run.close_time.timestamp() for number, run in found if run.close_time and number <= cycles + 1)
    return [*known, (cycles + 2, last)]


def _at(began: list[tuple[int, float]], cycle: int) -> float:
    """When a cycle began; in a straight line between those that are known."""
    for (first, first_s), (second, second_s) in pairwise(began):
        if first <= cycle <= second:
            return first_s + (second_s - first_s) * (cycle - first) / (second - first)
    raise ValueError(f"cycle {cycle} is outside of {began[0][0]} to {began[-1][0]}")


def show(found: list[Figures]) -> None:
    """Print the table."""
    table = Table(box=None, pad_edge=False)
    titles = ("cycles", "KB each", "first tenth ms/cycle", "last tenth", "largest history KB", "last chain KB")
    for title in (*titles, "stored MB", "restart s", "worker MB"):
        table.add_column(title, justify="right")
    for one in found:
        table.add_row(
            str(one.cycles),
            f"{one.result_bytes / 1000:g}",
            f"{one.first_ms:.0f}",
            f"{one.last_ms:.0f} (×{one.last_ms / one.first_ms:.2f})",
            f"{one.history_kb:.0f}",
            f"{one.last_history_kb:.0f}",
            f"{one.stored_mb:.1f}",
            f"{one.recovery_s:.2f}",
            f"{one.worker_mb:.0f}",
        )
    Console(width=140, highlight=False).print(table, markup=False)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.long_sessions", description="Measure whether a session gets dearer with its age."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    given = parser.parse_args()
    found = []
    for cycles, size in SESSIONS:
        print(f"{cycles} cycles with {size / 1000:g} KB each …", flush=True)
        found.append(asyncio.run(measure(cycles, size)))
    show(found)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
