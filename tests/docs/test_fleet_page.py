"""docs/fleet.md holds: its flags are the worker's, and it lists the metrics that there are, and no others."""

import re
from pathlib import Path
from typing import Any

from countersign.serving import fleet_metrics
from countersign.serving.settings import WorkerSettings
from countersign.workflows.metering import COUNTERS, DECISION_SECONDS, from_zero

PAGE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text()
GAUGES = {
    fleet_metrics.SESSIONS_WAITING,
    fleet_metrics.QUESTIONS_OPEN,
    fleet_metrics.UNKNOWN_OUTCOMES_OPEN,
    fleet_metrics.OLDEST_AGE,
    fleet_metrics.TRUNCATED,
    fleet_metrics.COUNTED_AT,
}


class Remembering:
    """A meter, and its counters, that remembers what was added: name and labels."""

    def __init__(self) -> None:
        self.added: list[tuple[str, dict[str, str]]] = []

    def create_counter(self, name: str, description: str) -> Any:
        """A counter of that name."""

        class Counter:
            def add(_, value: int, labels: dict[str, str]) -> None:
                assert value == 0
                self.added.append((name, labels))

        return Counter()


def test_each_metric_is_listed_and_each_listed_one_exists():
    """What somebody builds an alert on is exported, and nothing is exported unexplained."""
    listed = set(re.findall(r"countersign_[a-z_]+", PAGE))
    assert {name.removesuffix("_bucket") for name in listed} == GAUGES | {*COUNTERS, DECISION_SECONDS}


def test_each_flag_exists():
    """A worker takes every flag that the page names, but for those of other commands."""
    flags = {f"--{name.replace('_', '-')}" for name in WorkerSettings.model_fields}
    others = r"`(countersign|temporal) [^`\n]+`"
    assert set(re.findall(r"--[a-z][a-z-]+", re.sub(others, "", PAGE))) <= flags


def test_no_alert_waits_for_a_first_count_that_nobody_sees():
    """What is alerted of at its first count begins at 0, with the label that the rule names."""
    meter: Any = Remembering()
    from_zero(meter, "default", "queue", ["payer"])
    rules = re.findall(r'increase\((countersign_\w+)(?:\{stop_reason="(\w+)"\})?\[\w+\]\)\) > 0', PAGE)
    assert len(rules) == 4
    for name, reason in rules:
        assert any(name == begun and labels.get("stop_reason", "") == reason for begun, labels in meter.added), name
