"""The watch over builds whose workers are gone."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingWorkflowTaskState
from temporalio.api.workflow.v1 import PendingWorkflowTaskInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.service import RPCError, RPCStatusCode
from tests.support.fake_namespace import FakeNamespace, pinned, poller

from countersign.agent_client import builds
from countersign.agent_client.builds import lost_builds
from countersign.serving import builds as watch
from countersign.serving.shares import Share

SEEN = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = datetime(2026, 1, 2, tzinfo=UTC)

LOST = [pinned("s/cycle-1", "agents:b1")]
"""What is there while nobody polls: a cycle of a build whose workers are gone."""


class Looked(FakeNamespace):
    """Looks of the watch end like this, one after the other.

    Attributes:
        ended: Set by the look behind the last one, which hangs.
    """

    def __init__(self, *looks: Exception | list[Any]) -> None:
        super().__init__()
        self._looks, self.ended = list(looks), asyncio.Event()

    async def list_workflows(self, query: str, limit: int) -> Any:
        """Each look lists once."""
        if not self._looks:
            self.ended.set()
            await asyncio.Event().wait()
        look = self._looks.pop(0)
        if isinstance(look, Exception):
            raise look
        for workflow in look:
            yield workflow


async def said_after(monkeypatch: pytest.MonkeyPatch, *looks: Exception | list[Any]) -> list[str]:
    """What is said while looks end like this, one after the other."""
    client: Any = Looked(*looks)
    said = list[str]()
    monkeypatch.setattr(watch, "LOOK_S", 0)
    async with watch.watching(client, [Share("q", {})], said.append), asyncio.timeout(60):
        await client.ended.wait()
    return said


@pytest.mark.parametrize("trouble", [ValueError("odd"), RPCError("away", RPCStatusCode.UNAVAILABLE, b"")])
async def test_the_watch_goes_on_after_an_error(monkeypatch, trouble):
    """Whatever a look raises, the next one is made."""
    [line] = await said_after(monkeypatch, trouble, LOST)
    assert "agents:b1" in line


async def test_a_build_is_not_said_again_after_an_error(monkeypatch):
    """An outage in between is no news of the build; its return and loss is."""
    assert len(await said_after(monkeypatch, LOST, ValueError("odd"), LOST)) == 1
    assert len(await said_after(monkeypatch, LOST, [], LOST)) == 2


async def test_a_busy_build_costs_a_look_few_requests():
    """Hundreds of open cycles of a build that is alive: some are asked about, and the rest is told."""
    described: list[str] = []
    task = PendingWorkflowTaskInfo(state=PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED)
    task.scheduled_time.FromDatetime(WAITS)

    class Busy(FakeNamespace):
        def get_workflow_handle(self, cycle_id: str) -> Any:
            return SimpleNamespace(describe=lambda: self._described(cycle_id))

        async def _described(self, cycle_id: str) -> Any:
            described.append(cycle_id)
            return SimpleNamespace(raw_description=DescribeWorkflowExecutionResponse(pending_workflow_task=task))

    temporal: Any = Busy()
    temporal.pollers = [poller("agents", "b1", SEEN)]
    temporal.workflows = [pinned(f"s{number}/cycle-1", "agents:b1") for number in range(300)]
    [found] = await lost_builds(temporal, "q")
    assert len(described) == len(found.cycles) == builds.MOST_DESCRIBED
    assert "280 more were not looked at" in found.words()
    assert "--query" in found.advice("default", "q")
