"""What a session that waits for a person holds: memory of its worker; with a small cache, the time to wake it up."""

import asyncio
import dataclasses
import time

from benchmarks.lab import Lab, new_id, until
from benchmarks.processes import memory_mb
from benchmarks.questions import Column, Figures, Question
from benchmarks.ways import OURS, THE_FLOOR, THE_PEER, Way

AT_ONCE = 25
"""Sessions that are on their way to their question at the same time."""

LOOK_EVERY_S = 0.5
"""Whether it asks is a question to its worker, which has sessions to start meanwhile."""

SAMPLE = 20
"""Sessions that are answered in the end, each of them timed."""


async def measure(lab: Lab, way: Way, sessions: int) -> Figures:
    """Let so many sessions ask, one model call each, on a fresh worker; then answer some."""
    worker = lab.worker(way)
    await worker.stop()
    await worker.start()
    await _ask(lab, way, 5)  # what the first sessions load stays out of it
    before_mb = memory_mb(worker.pid)
    ids = await _ask(lab, way, sessions)
    after_mb = memory_mb(worker.pid)
    woken_ms = [await _wake(lab, way, session_id) for session_id in ids[:SAMPLE]]
    return {
        "kilobytes": (after_mb - before_mb) * 1000 / sessions,
        "worker_mb": after_mb,
        "woken_ms": sorted(woken_ms)[len(woken_ms) // 2],
    }


async def _ask(lab: Lab, way: Way, sessions: int) -> list[str]:
    ids = [new_id() for _ in range(sessions)]
    bound = asyncio.Semaphore(AT_ONCE)

    async def one(session_id: str) -> None:
        async with bound:
            await way.start(lab.client, session_id, 0, asks=True)
            await until(lambda: way.asks(lab.client, session_id), LOOK_EVERY_S)

    await asyncio.gather(*(one(session_id) for session_id in ids))
    return ids


async def _wake(lab: Lab, way: Way, session_id: str) -> float:
    question = await lab.asked(way, session_id)
    sent = time.monotonic()
    await way.answer(lab.client, session_id, question)
    return (await lab.marks.of(session_id) - sent) * 1000


WAITING = Question(
    name="waiting",
    title="Sessions that wait for a person, all in the worker's cache",
    size="sessions",
    sizes=(1000,),
    quick_sizes=(100,),
    rounds=2,
    weight=3,
    ways=(OURS, THE_FLOOR, THE_PEER),
    columns=(
        Column("kilobytes", "KB/session", 0),
        Column("worker_mb", "worker MB", 0),
        Column("woken_ms", "answer to tool, ms", 0),
    ),
    measure=measure,
    drawn="kilobytes",
    cached=2000,
)

CROWD = dataclasses.replace(
    WAITING,
    name="crowd",
    title="Sessions that wait for a person, a hundred of them in the worker's cache",
    sizes=(5000,),
    quick_sizes=(200,),
    rounds=1,
    cached=100,
)
