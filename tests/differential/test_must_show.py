"""What must hold of an agent that asks: every case in this process, and the same on a worker."""

import asyncio
import copy
from typing import Any

import pytest
from tests.differential.must_show import Case, world
from tests.differential.running import Trace, answers, play
from tests.differential.sdk import plain
from tests.differential.shown import BY_NAME, CASES
from tests.differential.test_durable import on_a_worker


def test_cases_have_names_of_their_own():
    """docs/semantics.md names them."""
    assert len(BY_NAME) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario.name)
async def test_here(case: Case):
    """In this process."""
    agent, trace = case.scenario.build(world()), Trace()

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        call = {} if answers(prompt) else copy.deepcopy(case.scenario.call)
        result = await agent.invoke_async(prompt, **call)
        return result.stop_reason, list(result.interrupts or [])

    await play(case.scenario, invoke, trace)
    trace.messages, trace.state = plain(agent.messages), dict(agent.state.get())
    assert case.shows(trace) == case.expected


async def test_on_a_worker(lab):
    """Each case once more, in a session: what is shown is the same."""
    worker = lab.worker("tests.differential.shown")
    places = asyncio.Semaphore(6)

    async def fault(place: int, case: Case) -> str | None:
        async with places:
            session = await lab.start(worker, f"case-{place}", None, lifetime="open", **case.scenario.call)
            trace = await on_a_worker(case.scenario, session, raw=True)
        shown = case.shows(trace)
        return (
            None if shown == case.expected else f"{case.scenario.name}\n  shows    {shown}\n  expected {case.expected}"
        )

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fault(place, case)) for place, case in enumerate(CASES)]
    found = [task.result() for task in tasks if task.result()]
    assert not found, f"{len(found)} of {len(CASES)}:\n" + "\n".join(found)
