"""How long a session needs to go on after its worker was killed, against its length.

The session has asked and waits. Its worker is killed, a new one is started at once, and the answer is sent as soon as
that one is ready: so the start of Python, the same work for any session, is told apart.
"""

import time

from benchmarks.lab import Lab, new_id
from benchmarks.questions import Column, Figures, Question
from benchmarks.ways import OURS, THE_FLOOR, THE_PEER, Way


async def measure(lab: Lab, way: Way, cycles: int) -> Figures:
    """Kill the worker of a waiting session, start another one, answer, and wait for the tool to start."""
    session_id, worker = new_id(), lab.worker(way)
    await way.start(lab.client, session_id, cycles, asks=True)
    question = await lab.asked(way, session_id)
    await worker.kill()
    killed = time.monotonic()
    await worker.start()
    ready = time.monotonic()
    await way.answer(lab.client, session_id, question)
    began = await lab.marks.of(session_id)
    await way.result(lab.client, session_id)
    return {"ready_s": ready - killed, "recovery_s": began - ready, "total_s": began - killed}


RECOVERY = Question(
    name="recovery",
    title="From a worker's SIGKILL to the next tool call",
    size="cycles before",
    sizes=(10, 50, 200),
    quick_sizes=(10,),
    rounds=3,
    weight=4,
    ways=(OURS, THE_FLOOR, THE_PEER),
    columns=(
        Column("ready_s", "new worker ready, s", 2),
        Column("recovery_s", "ready to tool, s", 2),
        Column("total_s", "kill to tool, s", 2),
    ),
    measure=measure,
    drawn="recovery_s",
)
