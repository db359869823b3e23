"""How long questions wait if nobody says so at the session's start."""

import asyncio
from datetime import datetime

from tests.durable.test_waiting import questions

from countersign.agent_core.wire import DEADLINE_S


def waits_s(question) -> float:
    """From a question to its deadline."""
    return (datetime.fromisoformat(question.deadline) - datetime.fromisoformat(question.asked_at)).total_seconds()


async def test_a_start_without_a_deadline_gets_the_workers(lab):
    """Left out or null; one that says a time keeps it, be it what used to be everybody's default."""
    worker = lab.worker("lab.agents", None, "--default-deadline-s", "7200")
    starts = [{}, {"deadline_s": None}, {"deadline_s": DEADLINE_S}, {"deadline_s": 60}]
    prompt = f"effects={lab.effects_file} effect:a"
    sessions = await asyncio.gather(*(lab.start(worker, "per-call", prompt, **options) for options in starts))
    found = [question for session in sessions for question in await questions(session, 1)]
    assert [waits_s(question) for question in found] == [7_200, 7_200, DEADLINE_S, 60]


async def test_the_worker_that_asks_decides(lab):
    """What was asked before the setting changed keeps its deadline; what the session asks next has the new one."""
    worker = lab.worker("lab.agents", None, "--default-deadline-s", "7200")
    session = await lab.start(worker, "free", f"effects={lab.effects_file} asks_twice:t")
    [first] = await questions(session, 1)
    worker.kill()
    lab.worker("lab.agents", worker.queue, "--default-deadline-s", "3600")
    [still] = await questions(session, 1)
    assert (still.id, waits_s(still)) == (first.id, 7_200)
    await session.answer((first.id, "one"))
    async with asyncio.timeout(60):
        while not (asked := [one for one in await session.interrupts() if one.id != first.id]):
            await asyncio.sleep(0.05)
    assert waits_s(asked[0]) == 3_600
