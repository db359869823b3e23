"""What must hold of an agent that asks: every case in this process, and the same on a worker."""

import asyncio
import copy
import re
from pathlib import Path
from typing import Any

import pytest
from tests.differential.must_show import Case, world
from tests.differential.running import Trace, answers, play
from tests.differential.sdk import plain
from tests.differential.shown import BY_NAME, CASES
from tests.differential.test_durable import on_a_worker

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"


def test_the_page_names_cases_that_exist():
    """Each case has a name of its own; docs/semantics.md says what it is about."""
    assert len(BY_NAME) == len(CASES)
    named = set(re.findall(r"`\[(.+?)\]`", PAGE.read_text()))
    assert named <= BY_NAME.keys() and len(named) > 40


def test_the_page_has_a_test_in_each_driver_for_what_must_hold():
    """A row names a case, which is played in both, or one test of each."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| M\d+ \|", line)]
    assert len(rows) > 30
    assert [row[1:3] for row in rows if "`[" not in row[3] and ("`" not in row[4] or "`" not in row[5])] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scenario.name)
async def test_here(case: Case):
    """In this process."""
    agent, trace = case.scenario.build(world()), Trace()

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        call = {} if answers(prompt) else copy.deepcopy(case.scenario.call)
        result = await agent.invoke_async(prompt, **call)
        if (output := result.structured_output) is not None:
            trace.outputs.append(output.model_dump(mode="json"))
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
