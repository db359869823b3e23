"""How long after a person's answer the tool begins, and the client has the result."""

import asyncio
import time

from benchmarks.lab import Lab, new_id
from benchmarks.questions import Column, Figures, Question
from benchmarks.ways import OURS, OURS_BY_SIGNAL, THE_FLOOR, THE_PEER, Way


async def measure(lab: Lab, way: Way, cycles: int) -> Figures:
    """Let a session of so many cycles ask, then answer. The client waits for the result already, as a program would."""
    session_id = new_id()
    await way.start(lab.client, session_id, cycles, asks=True)
    question = await lab.asked(way, session_id)
    result = asyncio.create_task(way.result(lab.client, session_id))
    await asyncio.sleep(0.3)  # nothing of the session's own work is left to run
    sent = time.monotonic()
    await way.answer(lab.client, session_id, question)
    delivered = time.monotonic()
    await result
    ended = time.monotonic()
    began = await lab.marks.of(session_id)
    return {
        "delivered_ms": (delivered - sent) * 1000,
        "began_ms": (began - sent) * 1000,
        "result_ms": (ended - sent) * 1000,
    }


APPROVALS = Question(
    name="approvals",
    title="From a person's answer to the tool's start, and to the result",
    size="cycles before",
    sizes=(2, 50),
    quick_sizes=(2,),
    rounds=15,
    weight=1.5,
    ways=(OURS, OURS_BY_SIGNAL, THE_FLOOR, THE_PEER),
    columns=(
        Column("delivered_ms", "answer delivered, ms"),
        Column("began_ms", "tool started, ms"),
        Column("result_ms", "result, ms"),
    ),
    measure=measure,
    drawn="began_ms",
)
