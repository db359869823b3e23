"""A sample of the scenarios as agents that a worker serves: from every family, and of every kind in it."""

from collections.abc import Callable
from typing import Any

from tests.differential.running import Scenario
from tests.differential.scenarios import FAMILIES
from tests.differential.sdk import World

from countersign import ScriptedModel, durable

EVERY = {
    "handlers": 61,
    "hooks": 17,
    "hook_events": 23,
    "asking": 17,
    "handlers_asking": 4,
    "approving": 17,
    "documents": 1,
    "loops": 9,
    "combined": 29,
    "cancelling": 20,
    "structured": 15,
}
"""Which part of each family is served: one of so many."""

HERE_ONLY = "refused-answers-have-codes"
"""The client refuses such answers before they are sent, in its own words (tests/client)."""

SAMPLE: dict[str, Scenario] = {
    f"{family}-{index}": FAMILIES[family][index]
    for family, step in EVERY.items()
    for index in range(0, len(FAMILIES[family]), step)
    if HERE_ONLY not in FAMILIES[family][index].known and not FAMILIES[family][index].call
}


def build(scenario: Scenario) -> Any:
    """The scenario's agent, which keeps its notes in `agent.state`."""
    return scenario.build(World("countersign", ScriptedModel, None))


def _factory(name: str, scenario: Scenario) -> Callable[[], Any]:
    @durable(name)
    def factory() -> Any:
        return build(scenario)

    return factory


globals().update({f"serves {name}": _factory(name, scenario) for name, scenario in SAMPLE.items()})
