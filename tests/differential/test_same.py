"""The same scenario goes the same way with strands-agents 1.62 and here: over a thousand of them, in this process.

Compared are stop reasons and errors, questions, the order in which hooks, handlers and tools run, the conversation,
what the model saw, and `agent.state`. Where a scenario runs into a deliberate difference it says so by name, and may
differ in what that difference touches and in nothing else.
"""

import pytest
from tests.differential.differences import BY_NAME
from tests.differential.models import MODELS
from tests.differential.running import Scenario, in_process
from tests.differential.scenarios import ALL, FAMILIES
from tests.differential.sdk import names_of


async def faults(scenario: Scenario, *, sequential: bool = False) -> str | None:
    """How the sides differ where they should not."""
    there, here = [
        await in_process(
            scenario, side, model, **({"tool_executor": names_of(side).SequentialToolExecutor()} if sequential else {})
        )
        for side, model in (("strands", MODELS["strands"]), ("countersign", MODELS["countersign"]))
    ]
    found = there.differs(here)
    allowed = {field for name in scenario.known for field in BY_NAME[name].hides}
    lines = [f"  {field}\n    there {getattr(there, field)}\n    here  {getattr(here, field)}"
             for field in sorted(found - allowed)]  # fmt: skip
    if scenario.known and not found and not sequential:
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


SEQUENTIAL = ("hooks", "asking", "handlers_asking", "combined", "cancelling")
"""Families with messages of several calls; every second scenario of theirs is played."""


@pytest.mark.parametrize("family", SEQUENTIAL)
async def test_both_sides_go_the_same_way_one_call_after_the_other(family):
    """With the sequential executor too: the order of hooks, and what becomes of the calls behind one that asks."""
    scenarios = [item for item in FAMILIES[family][::2] if "the last one first" not in item.name]  # there is but one
    found = [fault for scenario in scenarios if (fault := await faults(scenario, sequential=True))]
    assert not found, f"{len(found)} of {len(scenarios)} scenarios:\n" + "\n".join(found[:10])
