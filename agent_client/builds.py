"""Versioned builds: cycles that wait for a build whose workers are gone, and the command that frees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState, TaskQueueType, VersioningBehavior
from temporalio.api.workflow.v1 import WorkflowExecutionVersioningInfo
from temporalio.api.workflowservice.v1 import DescribeWorkerDeploymentRequest, DescribeWorkerDeploymentVersionRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.shell import temporal_command
from countersign.agent_client.workers import POLL_LASTS, Build, pollers
from countersign.agent_core.wire import CYCLE_WORKFLOW

_RPC_TIMEOUT = timedelta(seconds=10)
_VERSION = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")

_ACTIVITY_WAITS = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
_TASK_WAITS = PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED

TAKEN_AFTER = timedelta(seconds=5)
"""A worker that polls takes a task at once; one that is this old, and younger than the last poll, waits for nobody."""

MOST_LOOKED_AT = 1_000
"""Open cycles that are listed; a cycle lives for seconds, so there are few."""

MOST_DESCRIBED = 20
"""Of these, the newest of a build of which a worker was seen lately are asked about, one request each."""


@dataclass(frozen=True)
class LostBuild:
    """A build that nobody serves, and on which cycles wait.

    Attributes:
        version: Deployment and build, like "agents:2026-11-30".
        cycles: Workflow ids of the cycles that are pinned to it.
        not_looked_at: How many more cycles of this build run, of which nobody knows whether they wait.
    """

    version: str
    cycles: Sequence[str]
    not_looked_at: int = 0

    def words(self) -> str:
        """What is wrong, in one sentence."""
        some = ", ".join(repr(cycle) for cycle in self.cycles[:3]) + (", …" if len(self.cycles) > 3 else "")
        count = "1 cycle waits" if len(self.cycles) == 1 else f"{len(self.cycles)} cycles wait"
        more = f"; {self.not_looked_at} more were not looked at" if self.not_looked_at else ""
        return f"{count} for build {self.version!r}, of which no worker polls ({some}){more}"

    def advice(self, namespace: str, task_queue: str) -> str:
        """What to do about it."""
        which = ["--workflow-id", self.cycles[0]]
        if len(self.cycles) + self.not_looked_at > 1:
            which = ["--yes", "--query", pinned_query(task_queue, self.version)]
        unpin = ["workflow", "update-options", "-n", namespace, *which, "--versioning-override-behavior"]
        take_over = temporal_command(*unpin, "auto_upgrade")
        return f"start a worker of that build, or let the current build take over: {take_over}"


def pinned_query(task_queue: str, version: str = "") -> str:
    """Temporal's query for open cycles of a queue that are pinned to a build; to any build if it is ""."""
    # Double quotes: such a query can be pasted into a shell between single ones.
    query = (
        f'WorkflowType = "{CYCLE_WORKFLOW}" AND ExecutionStatus = "Running" AND TaskQueue = {_text(task_queue)} '
        'AND TemporalWorkflowVersioningBehavior = "Pinned"'
    )
    return f"{query} AND TemporalWorkerDeploymentVersion = {_text(version)}" if version else query


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def pinned_to(info: WorkflowExecutionVersioningInfo) -> Build | None:
    """The build that a workflow ends on; None if it is pinned to none."""
    override = info.versioning_override
    if override.HasField("pinned"):
        version = override.pinned.version
    elif override.auto_upgrade or info.behavior != VersioningBehavior.VERSIONING_BEHAVIOR_PINNED:
        return None
    else:
        version = info.deployment_version
    return Build(version.deployment_name, version.build_id)


async def current_build(temporal: Client, deployment: str) -> str:
    """The build id of a deployment's current version; "" if it has none.

    Raises:
        RPCError: If the server does not know the deployment.
    """
    request = DescribeWorkerDeploymentRequest(namespace=temporal.namespace, deployment_name=deployment)
    answer = await temporal.workflow_service.describe_worker_deployment(request, timeout=_RPC_TIMEOUT)
    current: str = answer.worker_deployment_info.routing_config.current_deployment_version.build_id
    return current


async def serves(temporal: Client, build: Build, task_queue: str) -> bool:
    """Whether a queue of tools belongs to a build: then that build's pinned cycles send their calls to it alone.

    Raises:
        RPCError: If the server does not say.
    """
    version = WorkerDeploymentVersion(deployment_name=build.deployment, build_id=build.build_id)
    request = DescribeWorkerDeploymentVersionRequest(namespace=temporal.namespace, deployment_version=version)
    try:
        answer = await temporal.workflow_service.describe_worker_deployment_version(request, timeout=_RPC_TIMEOUT)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:  # as of a build that nobody has been for long
            raise
        return False
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return any((queue.name, queue.type) == (task_queue, kind) for queue in answer.version_task_queues)


async def lost_builds(temporal: Client, task_queue: str) -> list[LostBuild]:
    """Builds without workers on which cycles of a queue wait. They would wait in silence.

    Args:
        temporal: Temporal's client.
        task_queue: The queue.

    Raises:
        RPCError: If the server does not list the cycles or who polls.
    """
    now = datetime.now(UTC)
    polls: dict[str, datetime] = {}
    for kind in ("workflow", "activity"):
        for poller in await pollers(temporal, task_queue, kind):
            version = f"{poller.deployment}:{poller.build_id}"
            polls[version] = max(poller.last_seen, polls.get(version, poller.last_seen))
    open_cycles: dict[str, list[str]] = {}
    async for cycle in temporal.list_workflows(pinned_query(task_queue), limit=MOST_LOOKED_AT):
        if pinned_to := cycle.typed_search_attributes.get(_VERSION):
            open_cycles.setdefault(pinned_to, []).append(cycle.id)
    found = []
    for version, cycles in sorted(open_cycles.items()):
        looked_at = cycles if version not in polls else cycles[:MOST_DESCRIBED]
        waiting = [one for one in looked_at if await _lost(temporal, one, task_queue, polls.get(version), now)]
        if waiting:
            found.append(LostBuild(version, waiting, len(cycles) - len(looked_at)))
    return found


async def _lost(temporal: Client, cycle_id: str, task_queue: str, last_poll: datetime | None, now: datetime) -> bool:
    """Whether a cycle has a task that a worker of its build would have taken, had there been one.

    Args:
        temporal: Temporal's client.
        cycle_id: The cycle's workflow.
        task_queue: Its queue; a call that goes to a queue of the tool's own says nothing of this build.
        last_poll: When its build was last seen; the server remembers pollers for five minutes.
        now: The present moment.
    """
    if last_poll is None:
        return True
    seen = (await temporal.get_workflow_handle(cycle_id).describe()).raw_description
    tasks = [
        item.scheduled_time
        for item in seen.pending_activities
        if item.state == _ACTIVITY_WAITS and item.activity_options.task_queue.name == task_queue
    ]
    if seen.pending_workflow_task.state == _TASK_WAITS:
        tasks.append(seen.pending_workflow_task.scheduled_time)
    since = min((at.ToDatetime(UTC) for at in tasks), default=None)
    if since is None:
        return now - last_poll > POLL_LASTS
    return last_poll < since and now - since > TAKEN_AFTER
