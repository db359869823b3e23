"""What each setting of the dev server buys: the same work on servers that differ in one setting."""

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from benchmarks.cycles import measure
from benchmarks.lab import Lab
from benchmarks.ways import OURS, THE_FLOOR
from countersign.agent_client.dev_server import SETTINGS, DevServer

CYCLES = 30


def variants() -> dict[str, Mapping[str, str]]:
    """The servers that are compared: without any setting, as we start it, and as we start it less or plus one."""
    plus = {
        "history.timerProcessorMaxPollRPS": "100000",
        "history.visibilityProcessorMaxPollRPS": "100000",
        "history.workflowIdReuseMinimalInterval": '"0s"',
        "history.timerProcessorMaxTimeShift": '"10ms"',
        "history.transferProcessorSchedulerWorkerCount": "16",
        "history.enableHostLevelEventsCache": "true",
        "history.shardUpdateMinInterval": '"10m"',
        "matching.numTaskqueueReadPartitions": "4",
    }
    found: dict[str, Mapping[str, str]] = {"none": {}, "ours": SETTINGS}
    for key in SETTINGS:
        found[f"less {key}"] = {name: value for name, value in SETTINGS.items() if name != key}
    for key, value in plus.items():
        if key not in SETTINGS:
            found[f"plus {key}={value}"] = {**SETTINGS, key: value}
    return found


async def compare(rounds: int, console: Console) -> dict[str, dict[str, float]]:
    """Time per cycle and the server's CPU of the floor and of ours on each server; medians over the rounds."""
    seen: dict[str, list[dict[str, float]]] = {}
    for number in range(rounds):
        for name, settings in variants().items():
            console.print(f"round {number + 1} of {rounds}: {name}", highlight=False)
            seen.setdefault(name, []).append(await _one(settings))
    return {
        name: {key: statistics.median(figures[key] for figures in group) for key in group[0]}
        for name, group in seen.items()
    }


async def _one(settings: Mapping[str, str]) -> dict[str, float]:
    async with Lab([OURS, THE_FLOOR], server=DevServer(settings=settings, leash=True)) as lab:
        for way in (OURS, THE_FLOOR):
            await measure(lab, way, 3)
        ours = await measure(lab, OURS, CYCLES)
        floor = await measure(lab, THE_FLOOR, CYCLES)
        idle_ms = await _idle(lab)
    return {
        "ours_ms": ours["ms"],
        "floor_ms": floor["ms"],
        "ours_server_ms": ours["server_ms"],
        "floor_server_ms": floor["server_ms"],
        "idle_ms_per_s": idle_ms,
    }


async def _idle(lab: Lab) -> float:
    """CPU that the server uses when nothing happens, in ms a second."""
    from benchmarks.processes import cpu_ms  # noqa: PLC0415

    before, began = cpu_ms(lab.server.pid), time.monotonic()
    await asyncio.sleep(2)
    return (cpu_ms(lab.server.pid) - before) / (time.monotonic() - began)
