"""The watch over builds whose workers are gone."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client import builds
from countersign.agent_client.builds import LostBuild, lost_builds
from countersign.agent_client.workers import Poller
from countersign.serving import builds as watch
from countersign.serving.shares import Share

LOST = LostBuild("agents:b1", ["s/cycle-1"])
CLIENT: Any = SimpleNamespace(namespace="default")


async def said_after(monkeypatch: pytest.MonkeyPatch, *looks: Exception | list[LostBuild]) -> list[str]:
    """What is said while looks end like this, one after the other."""
    script, ended, said = list(looks), asyncio.Event(), list[str]()

    async def look(client: object, task_queue: str) -> list[LostBuild]:
        if not script:
            ended.set()
            await asyncio.Event().wait()
        outcome = script.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(watch, "lost_builds", look)
    monkeypatch.setattr(watch, "LOOK_S", 0)
    async with watch.watching(CLIENT, [Share("q", {})], said.append), asyncio.timeout(10):
        await ended.wait()
    return said


@pytest.mark.parametrize("trouble", [ValueError("odd"), RPCError("away", RPCStatusCode.UNAVAILABLE, b"")])
async def test_the_watch_goes_on_after_an_error(monkeypatch, trouble):
    """Whatever a look raises, the next one is made."""
    [line] = await said_after(monkeypatch, trouble, [LOST])
    assert "agents:b1" in line


async def test_a_build_is_not_said_again_after_an_error(monkeypatch):
    """An outage in between is no news of the build; its return and loss is."""
    assert len(await said_after(monkeypatch, [LOST], ValueError("odd"), [LOST])) == 1
    assert len(await said_after(monkeypatch, [LOST], [], [LOST])) == 2


async def test_a_busy_build_costs_a_look_few_requests(monkeypatch):
    """Hundreds of open cycles of a build that is alive: some are asked about, and the rest is told."""
    described: list[str] = []

    class Temporal:
        namespace = "default"

        async def list_workflows(self, query: str, limit: int) -> Any:
            attributes = SimpleNamespace(get=lambda key: "agents:b1")
            for number in range(300):
                yield SimpleNamespace(id=f"s{number}/cycle-1", typed_search_attributes=attributes)

        def get_workflow_handle(self, cycle_id: str) -> Any:
            return SimpleNamespace(describe=lambda: self._described(cycle_id))

        async def _described(self, cycle_id: str) -> Any:
            described.append(cycle_id)
            task = SimpleNamespace(
                state=builds._TASK_WAITS, scheduled_time=SimpleNamespace(ToDatetime=lambda zone: WAITS)
            )
            return SimpleNamespace(raw_description=SimpleNamespace(pending_activities=[], pending_workflow_task=task))

    async def polled(temporal: object, task_queue: str, kind: str) -> list[Poller]:
        return [Poller("1@host", SEEN, "agents", "b1")]

    monkeypatch.setattr(builds, "pollers", polled)
    temporal: Any = Temporal()
    [found] = await lost_builds(temporal, "q")
    assert len(described) == len(found.cycles) == builds.MOST_DESCRIBED
    assert "280 more were not looked at" in found.words()
    assert "--query" in found.advice("default", "q")


SEEN = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = datetime(2026, 1, 2, tzinfo=UTC)
