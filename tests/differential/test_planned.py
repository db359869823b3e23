"""Plans thrown together by seeds go the same way in this process and on a worker."""

import asyncio
import json
from random import Random
from typing import Any

from tests.core.planned import TURNS, make_plan, planned
from tests.core.playing import replies
from tests.differential.running import Trace

SEEDS = range(10)


def plan(seed: int) -> dict[str, Any]:
    """A seed's plan, without answers that a client refuses before they are sent."""
    found = make_plan(Random(seed).choice)
    found["answers"] = ["y" if item in ("twice", "other id", "cancel") else item for item in found["answers"]]
    return found


async def played(invoke: Any, given: dict[str, Any]) -> Trace:
    """Prompt and answers, until the turn is over."""
    trace, answers, sent = Trace(), list(given["answers"]), json.dumps(given)
    for _ in range(TURNS):
        try:
            result = await invoke(sent)
        except Exception as error:
            cause = getattr(error, "original_exception", error)
            trace.stops.append(f"{getattr(error, 'error_type', type(cause).__name__)}")
            break
        trace.stops.append(result.stop_reason)
        interrupts = list(result.interrupts or [])
        trace.asked.append([[item.name, item.reason] for item in interrupts])
        trace.state = dict(getattr(result, "agent_state", result.state))
        if result.stop_reason != "interrupt":
            break
        sent = replies([item.id for item in interrupts], answers)
    return trace


async def test_plans_go_the_same_way_on_a_worker(lab):
    """Stops, questions, the conversation, and what ran."""
    worker = lab.worker("tests.core.planned")
    places = asyncio.Semaphore(6)

    async def fault(seed: int) -> str | None:
        given = plan(seed)
        agent = planned(sequential=given["sequential"])
        here = await played(agent.invoke_async, given)
        here.messages, here.state = list(agent.messages), agent.state.get()
        async with places:
            name = "planned-sequential" if given["sequential"] else "planned"
            session = await lab.start(worker, name, None, lifetime="open")
            there = await played(session.invoke, given)
            there.messages = [message async for message in session.transcript()]
            await session.close()
        unknown = {"state"} if here.stops[-1:] != ["end_turn"] else set()  # an error carries none
        lines = [f"  {field}\n    here   {getattr(here, field)}\n    worker {getattr(there, field)}"
                 for field in here.differs(there) - unknown]  # fmt: skip
        return "\n".join([f"seed {seed}: {given}", *lines]) if lines else None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fault(seed)) for seed in SEEDS]
    found = [task.result() for task in tasks if task.result()]
    assert not found, f"{len(found)} of {len(SEEDS)}:\n" + "\n".join(found[:5])
