"""docs/fleet.md holds: its flags are the worker's, and it lists the metrics that there are, and no others."""

import re
from pathlib import Path

from countersign.serving import fleet_metrics
from countersign.serving.settings import WorkerSettings
from countersign.workflows.metering import COUNTERS, DECISION_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text()
GAUGES = {
    fleet_metrics.SESSIONS_WAITING,
    fleet_metrics.QUESTIONS_OPEN,
    fleet_metrics.OLDEST_AGE,
    fleet_metrics.TRUNCATED,
    fleet_metrics.COUNTED_AT,
}


def test_each_metric_is_listed_and_each_listed_one_exists():
    """What somebody builds an alert on is exported, and nothing is exported unexplained."""
    listed = set(re.findall(r"countersign_[a-z_]+", PAGE))
    assert {name.removesuffix("_bucket") for name in listed} == GAUGES | {*COUNTERS, DECISION_SECONDS}


def test_each_flag_exists():
    """A worker takes every flag that the page names."""
    flags = {f"--{name.replace('_', '-')}" for name in WorkerSettings.model_fields}
    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= flags
