"""Versioned builds: cycles that wait for a build whose workers are gone, and the command that frees them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from temporalio.client import Client
from temporalio.common import SearchAttributeKey

from countersign.agent_client.listing import quoted
from countersign.agent_client.shell import word
from countersign.agent_client.workers import POLL_LASTS, Poller
from countersign.agent_core.wire import CYCLE_WORKFLOW

_VERSION = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")

MOST_LOOKED_AT = 1_000
"""Open cycles that are looked at; a cycle lives for seconds, so there are few."""


@dataclass(frozen=True)
class LostBuild:
    """A build that nobody serves, and on which cycles wait.

    Attributes:
        version: Deployment and build, like "agents:2026-11-30".
        cycles: Workflow ids of the cycles that are pinned to it.
    """

    version: str
    cycles: Sequence[str]

    def words(self) -> str:
        """What is wrong, in one sentence."""
        some = ", ".join(repr(cycle) for cycle in self.cycles[:3]) + (", …" if len(self.cycles) > 3 else "")
        count = "1 cycle waits" if len(self.cycles) == 1 else f"{len(self.cycles)} cycles wait"
        return f"{count} for build {self.version!r}, of which no worker polls ({some})"

    def advice(self, namespace: str, task_queue: str) -> str:
        """What to do about it."""
        one = f"--workflow-id {word(self.cycles[0])}"
        if len(self.cycles) > 1:
            one = f"--yes --query {word(pinned_query(task_queue, self.version))}"
        return (
            "start a worker of that build, or let the current build take over: temporal workflow update-options "
            f"-n {word(namespace)} {one} --versioning-override-behavior auto_upgrade"
        )


def pinned_query(task_queue: str, version: str = "") -> str:
    """Temporal's query for open cycles of a queue that are pinned to a build; to any build if it is ""."""
    query = (
        f"WorkflowType = '{CYCLE_WORKFLOW}' AND ExecutionStatus = 'Running' AND TaskQueue = '{quoted(task_queue)}' "
        "AND TemporalWorkflowVersioningBehavior = 'Pinned'"
    )
    return f"{query} AND TemporalWorkerDeploymentVersion = '{quoted(version)}'" if version else query


async def lost_builds(temporal: Client, task_queue: str, polling: Iterable[Poller], now: datetime) -> list[LostBuild]:
    """Builds without workers on which cycles of a queue wait. They would wait in silence.

    Args:
        temporal: Temporal's client.
        task_queue: The queue.
        polling: Who asked for the queue's workflow tasks lately.
        now: The present moment.

    Raises:
        RPCError: If the server does not list the cycles.
    """
    served = {
        f"{poller.deployment}:{poller.build_id}"
        for poller in polling
        if poller.deployment and now - poller.last_seen <= POLL_LASTS
    }
    waiting: dict[str, list[str]] = {}
    async for cycle in temporal.list_workflows(pinned_query(task_queue), limit=MOST_LOOKED_AT):
        version = cycle.typed_search_attributes.get(_VERSION)
        if version is not None and version not in served:
            waiting.setdefault(version, []).append(cycle.id)
    return [LostBuild(version, cycles) for version, cycles in sorted(waiting.items())]
