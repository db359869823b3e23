"""How long cycles share one workflow."""

from datetime import timedelta

import pytest

from countersign.workflows.pace import LONGEST_STRETCH, Pace

AFTER, MOMENT, LONG = timedelta(seconds=2), timedelta(milliseconds=1), timedelta(seconds=20)


def pace(*durations_s: float | None) -> Pace:
    """A workflow whose effects worked so long."""
    found = Pace()
    for duration_s in durations_s:
        found.add(duration_s)
    return found


def test_time_in_queues_does_not_count():
    """A busy worker must not open more workflows, and be busier for it."""
    assert pace(0.5, 0.5).allows_another(AFTER, LONG)


def test_what_effects_worked_adds_up():
    """A model that takes its time gets a workflow for few cycles."""
    assert not pace(1.5, 0.5).allows_another(AFTER, LONG)


def test_a_workflow_never_lasts_for_long():
    """However long the queues: it holds user code."""
    assert not pace(0.1).allows_another(AFTER, AFTER * LONGEST_STRETCH)


@pytest.mark.parametrize(("lasted", "allowed"), [(MOMENT, True), (LONG, False)])
def test_without_durations_the_workflows_clock_decides(lasted, allowed):
    """A cycle that began before effects told their durations replays as it was decided."""
    assert pace(0.1, None, 0.1).allows_another(AFTER, lasted) is allowed


def test_zero_gives_each_cycle_its_own_workflow():
    """Whatever the clocks say."""
    assert not pace(0.0).allows_another(timedelta(0), timedelta(0))
