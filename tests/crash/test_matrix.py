"""A sample of the crash matrix; `make crash` takes every point."""

import asyncio

import pytest
from tests.crash.matrix import SENT, clean, kind_of, servers_killed, spread, workers_killed
from tests.crash.runs import Run

SERVER_KINDS = ("activation sent session", "activity marked", "activity reported")


@pytest.fixture(scope="module")
def base(temporal_server: str) -> Run:
    """The session with nobody killed."""
    return asyncio.run(clean(temporal_server))


async def test_a_worker_may_die_at_any_point(temporal_server, base):
    """At a point of every kind: the same transcript, each effect once, no answer lost, nothing asked twice."""
    figures = await workers_killed(spread(base.met), base, temporal_server, lanes=12, say=print)
    assert figures.faults == []
    assert len([run for run in figures.runs if run.killed]) >= 8, figures


async def test_a_server_may_die_and_come_back(base):
    """Killed around what a worker sends to it, the server comes back with its file, and nothing is lost or doubled."""
    points = [point for point in spread(base.met) if kind_of(point) in SERVER_KINDS]
    figures = await servers_killed(points, base, lanes=3, say=print)
    assert figures.faults == []
    assert len(points) == 3 and all(point.startswith(SENT) for point in points)
    assert {run.point for run in figures.runs if run.killed} == set(points)
