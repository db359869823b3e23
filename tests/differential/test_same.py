"""The same scenario goes the same way with strands-agents 1.62 and here: over a thousand of them, in this process.

Compared are stop reasons and errors, questions, the order in which hooks, handlers and tools run, the conversation,
what the model saw, and `agent.state`. Where a scenario runs into a deliberate difference it says so by name, and may
differ in what that difference touches and in nothing else.
"""

import pytest
from strands.tools.executors import SequentialToolExecutor
from tests.differential.differences import BY_NAME
from tests.differential.models import MODELS
from tests.differential.running import Scenario, in_process
from tests.differential.scenarios import ALL, FAMILIES


async def faults(scenario: Scenario, **options) -> str | None:
    """How the sides differ where they should not."""
    there = await in_process(scenario, "strands", MODELS["strands"], **options)
    here = await in_process(scenario, "countersign", MODELS["countersign"])
    found = there.differs(here)
    allowed = {field for name in scenario.known for field in BY_NAME[name].hides}
    lines = [f"  {field}\n    there {getattr(there, field)}\n    here  {getattr(here, field)}"
             for field in sorted(found - allowed)]  # fmt: skip
    if scenario.known and not found:
        lines.append(f"  says that it runs into {scenario.known}, and does not differ")
    return "\n".join([scenario.name, *lines]) if lines else None


def test_scenarios_have_names_of_their_own():
    """Hundreds of cases, none of them twice."""
    assert len({scenario.name for scenario in ALL}) == len(ALL) > 1000


@pytest.mark.parametrize("family", FAMILIES)
async def test_both_sides_go_the_same_way(family):
    """Nothing differs but what is listed, and what is listed does differ."""
    found = [fault for scenario in FAMILIES[family] if (fault := await faults(scenario))]
    assert not found, f"{len(found)} of {len(FAMILIES[family])} scenarios:\n" + "\n".join(found[:10])


async def test_calls_one_after_the_other_come_to_the_same():
    """With Strands' sequential executor too, as long as nobody is asked (there the first question ends the pass)."""
    marks = ("with 2", "two", "end_turn", "messages")
    quiet = [
        scenario
        for scenario in (*FAMILIES["hooks"], *FAMILIES["hook_events"])
        if any(mark in scenario.name for mark in marks)
    ]
    assert len(quiet) > 15
    found = [
        fault for scenario in quiet if (fault := await faults(scenario, tool_executor=SequentialToolExecutor()))
    ]  # fmt: skip
    assert not found, "\n".join(found[:10])
