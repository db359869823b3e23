"""What each setting of the dev server buys: the same hops on servers that differ in one setting.

python -m benchmarks.server_settings
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from benchmarks.cycles import measure
from benchmarks.floor import TASK_QUEUE
from benchmarks.lab import Lab, new_id, until
from benchmarks.processes import cpu_ms
from benchmarks.ways import THE_FLOOR
from countersign.agent_client.dev_server import SETTINGS, DevServer

CYCLES, RUNS, TIMERS = 30, 4, 5

CANDIDATES = {
    "history.timerProcessorMaxPollRPS": "100000",
    "history.visibilityProcessorMaxPollRPS": "100000",
    "history.transferProcessorSchedulerWorkerCount": "16",
    "history.enableHostLevelEventsCache": "true",
    "matching.numTaskqueueReadPartitions": "4",
}
"""Settings that might help, and values that would show it."""


def variants() -> dict[str, Mapping[str, str]]:
    """The servers that are compared: without any setting; as we start it; with one setting less, or one more."""
    found: dict[str, Mapping[str, str]] = {"no settings": {}, "ours": SETTINGS}
    for key in SETTINGS:
        found[f"- {key}"] = {name: value for name, value in SETTINGS.items() if name != key}
    for key, value in CANDIDATES.items():
        if key not in SETTINGS:
            found[f"+ {key}={value}"] = {**SETTINGS, key: value}
    return found


async def one(settings: Mapping[str, str]) -> dict[str, float]:
    """Measure a server with these settings, by bare workflows."""
    async with Lab([THE_FLOOR], server=DevServer(settings=settings, leash=True)) as lab:
        await measure(lab, THE_FLOOR, 3)
        cycles = await measure(lab, THE_FLOOR, CYCLES)
        return {
            "cycle, ms": cycles["ms"],
            "server CPU, ms": cycles["server_ms"],
            "continue-as-new, ms": await _hops(lab.client, RUNS, 0) / (RUNS - 1),
            "20 ms timer, ms": await _hops(lab.client, 1, TIMERS) / TIMERS,
            "listed after, ms": await _listed(lab.client),
            "idle CPU, ms/s": await _idle(lab.server.pid),
        }


async def _hops(client: Client, runs: int, timers: int) -> float:
    began = time.perf_counter()
    await client.execute_workflow("Hops", args=[runs, timers], id=new_id(), task_queue=TASK_QUEUE)
    return (time.perf_counter() - began) * 1000


async def _listed(client: Client) -> float:
    """How long after its start a workflow shows up in lists."""
    session_id = new_id()
    await client.start_workflow("Hops", args=[1, 0], id=session_id, task_queue=TASK_QUEUE)
    began = time.perf_counter()

    async def listed() -> bool:
        return [found async for found in client.list_workflows(f"WorkflowId = '{session_id}'")] != []

    await until(listed)
    return (time.perf_counter() - began) * 1000


async def _idle(pid: int) -> float:
    before_ms, began = cpu_ms(pid), time.monotonic()
    await asyncio.sleep(2)
    return (cpu_ms(pid) - before_ms) / (time.monotonic() - began)


async def compare(rounds: int) -> None:
    """Measure all variants in rounds; print medians."""
    console = Console(stderr=True)
    seen: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds):
        for name, settings in variants().items():
            console.print(f"round {number + 1} of {rounds}: {name}", highlight=False, markup=False)
            seen.setdefault(name, []).append(await one(settings))
    table = Table("server", *next(iter(seen.values()))[0], box=None, pad_edge=False)
    for name, group in seen.items():
        table.add_row(name, *(f"{statistics.median(each[key] for each in group):.0f}" for key in group[0]))
    Console(width=140).print(table, markup=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server_settings", description="Compare servers.")
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(compare(parser.parse_args().rounds))
