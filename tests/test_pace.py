"""How long cycles share one workflow."""

import math

import pytest

from countersign.workflows.pace import LONGEST_STRETCH, Pace

AFTER, MOMENT, LONG = 2.0, 0.001, 20.0  # seconds


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


@pytest.mark.parametrize("forged", [-5.0, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("lasted", "allowed"), [(MOMENT, True), (LONG, False)])
def test_what_no_clock_says_is_no_duration(forged, lasted, allowed):
    """A tool's worker may send what it likes: it neither stretches the workflow nor breaks it."""
    assert pace(0.1, forged).allows_another(AFTER, lasted) is allowed


def test_a_duration_beyond_all_measure_ends_the_sharing():
    """Python's `timedelta` can't hold it."""
    assert not pace(1e300, 1e300).allows_another(AFTER, MOMENT)


@pytest.mark.parametrize(("lasted", "allowed"), [(MOMENT, True), (LONG, False)])
def test_where_nothing_was_timed_the_workflows_clock_decides(lasted, allowed):
    """A resumed pass may run steps only, or refuse all its calls; histories from before durations replay so, too."""
    found = pace()
    assert found.allows_another(AFTER, lasted) is allowed
    found.add_step(MOMENT)
    assert found.allows_another(AFTER, lasted) is allowed


def test_steps_count_with_what_was_timed():
    """A policy that takes its time is work as well."""
    found = pace(1.5)
    found.add_step(1)
    assert not found.allows_another(AFTER, MOMENT)


@pytest.mark.parametrize("after_s", [math.inf, 1e300])
def test_any_setting_can_be_compared(after_s):
    """A client's huge `handover_after_s` is no error of each cycle."""
    assert pace(1.0).allows_another(after_s, LONG)


def test_zero_gives_each_cycle_its_own_workflow():
    """Whatever the clocks say."""
    assert not pace(0.0).allows_another(0, 0)
