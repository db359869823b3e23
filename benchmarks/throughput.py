"""How many sessions a second one worker serves, when many are started at once."""

import asyncio
import time

from benchmarks.lab import Lab, new_id
from benchmarks.processes import cpu_ms
from benchmarks.questions import Column, Figures, Question
from benchmarks.ways import OURS, OURS_PATIENT, THE_FLOOR, THE_PEER, Way

CYCLES = 3


async def measure(lab: Lab, way: Way, sessions: int) -> Figures:
    """Start so many sessions of three cycles at once and wait for all their results."""
    worker, server = lab.worker(way).pid, lab.server.pid
    worker_before, server_before, began = cpu_ms(worker), cpu_ms(server), time.perf_counter()

    async def one() -> None:
        session_id = new_id()
        await way.start(lab.client, session_id, CYCLES)
        await way.result(lab.client, session_id)

    await asyncio.gather(*(one() for _ in range(sessions)))
    took_s = time.perf_counter() - began
    return {
        "per_second": sessions / took_s,
        "worker_ms": (cpu_ms(worker) - worker_before) / sessions,
        "server_ms": (cpu_ms(server) - server_before) / sessions,
    }


THROUGHPUT = Question(
    name="throughput",
    title=f"Sessions of {CYCLES} cycles on one worker, all started at once",
    size="sessions",
    sizes=(100,),
    quick_sizes=(20,),
    rounds=5,
    weight=2,
    ways=(OURS, OURS_PATIENT, THE_FLOOR, THE_PEER),
    columns=(
        Column("per_second", "sessions/s"),
        Column("worker_ms", "worker CPU ms/session", 0),
        Column("server_ms", "server CPU ms/session", 0),
    ),
    measure=measure,
    drawn="per_second",
)
