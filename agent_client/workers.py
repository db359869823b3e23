"""Whether a worker serves a task queue, from the server's list of those who poll it; and what to say if none does."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from countersign.agent_client.errors import NoWorkerError
from countersign.agent_client.shell import how_to_start, temporal_command
from countersign.agent_client.worker_faults import GIVE_IT, LACKS

POLL_LASTS = timedelta(seconds=75)
"""An idle worker polls anew after a minute: one that was not seen for longer is gone. The server lists it for five."""

CLOCKS_DIFFER = timedelta(seconds=2)
"""The server's clock says when a worker polled, this machine's when it was asked."""

_RPC_TIMEOUT = timedelta(seconds=5)


@dataclass(frozen=True)
class Poller:
    """Something that asks a task queue for work.

    Attributes:
        identity: Like "1234@host".
        last_seen: When it asked last.
        deployment: Its worker deployment, if it is versioned.
        build_id: Its build there.
    """

    identity: str
    last_seen: datetime
    deployment: str = ""
    build_id: str = ""


@dataclass(frozen=True)
class Build:
    """A version of a worker deployment.

    Attributes:
        deployment: The deployment's name.
        build_id: The build there.
    """

    deployment: str
    build_id: str


@dataclass(frozen=True)
class Polled:
    """A task queue, as the server sees it.

    Attributes:
        pollers: Who has asked it for work in the last five minutes.
        current: The build that gets its new tasks; None if that is whoever is not versioned.
        ramping: Whether a part of them goes elsewhere meanwhile, to another build or to whoever is not versioned.
    """

    pollers: list[Poller]
    current: Build | None
    ramping: bool = False


async def pollers(temporal: Client, task_queue: str, kind: Literal["workflow", "activity"]) -> list[Poller]:
    """Who has asked a task queue for work in the last five minutes.

    Raises:
        RPCError: If the server does not say.
    """
    return (await polled(temporal, task_queue, kind)).pollers


async def polled(temporal: Client, task_queue: str, kind: Literal["workflow", "activity"] = "workflow") -> Polled:
    """Who asks a task queue for work, and which build gets it.

    Raises:
        RPCError: If the server does not say.
    """
    request = DescribeTaskQueueRequest(
        namespace=temporal.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.Value(f"TASK_QUEUE_TYPE_{kind.upper()}"),
    )
    answer = await temporal.workflow_service.describe_task_queue(request, timeout=_RPC_TIMEOUT)
    found = [
        Poller(
            item.identity,
            item.last_access_time.ToDatetime(UTC),
            item.deployment_options.deployment_name if item.deployment_options.build_id else "",
            item.deployment_options.build_id,
        )
        for item in answer.pollers
    ]
    routing = answer.versioning_info
    current = routing.current_deployment_version
    build = Build(current.deployment_name, current.build_id) if current.build_id else None
    return Polled(found, build, routing.ramping_version_percentage > 0)


async def start_command(temporal: Client, task_queue: str) -> str:
    """How to start a worker that gets the work of a task queue: of its current build, if it has one."""
    try:
        current = (await polled(temporal, task_queue)).current
    except RPCError:
        current = None  # a client that may not look; whoever starts workers can
    return how_to_start(task_queue, current.deployment, current.build_id) if current else how_to_start(task_queue)


async def last_poll(temporal: Client, task_queue: str) -> datetime | None:
    """When a worker last polled a task queue for workflows, as far as the server knows.

    Returns:
        The time of the last poll; None if nobody polls who may get tasks. A server that does not say counts as polled
        now: whoever asks wants to know that there is surely no worker.
    """
    now = datetime.now(UTC)
    try:
        found = await polled(temporal, task_queue)
    except RPCError:
        return now
    versioned_only = found.current is not None and not found.ramping
    newest = max((one.last_seen for one in found.pollers if one.build_id or not versioned_only), default=None)
    return None if newest is None or now - newest > POLL_LASTS else newest


async def nobody_polls(temporal: Client, task_queue: str, since: datetime | None = None) -> bool:
    """True if surely no worker serves a task queue.

    Args:
        temporal: Temporal's client.
        task_queue: The queue.
        since: When something was put into it that a worker would have taken at once: whoever has not
            polled since then did not take it, and was killed. None to believe the server's list.
    """
    seen = await last_poll(temporal, task_queue)
    return seen is None or (since is not None and seen < since - CLOCKS_DIFFER)


async def no_worker(temporal: Client, seen: WorkflowExecutionDescription) -> NoWorkerError:
    """The error for a session that can't be asked because surely no worker runs, with the next step."""
    return await _unanswered(
        temporal, seen, f"no worker answers for session {seen.id!r}, which is safe and goes on when one runs"
    )


async def no_answer(
    temporal: Client, seen: WorkflowExecutionDescription, waited_s: float | None = None
) -> NoWorkerError:
    """The error for a session that did not answer: its worker may be gone, or busy.

    Args:
        temporal: Asked which build a worker should be of.
        seen: The session.
        waited_s: For how long it was waited, in seconds; None if that is not known.
    """
    within = f" within {waited_s:g} s" if waited_s is not None else ""
    what = f"session {seen.id!r}, which is safe, did not answer{within}: its worker is busy or gone"
    return await _unanswered(temporal, seen, f"{what}; ask again, and if no worker runs", ", ")


def task_fails(seen: WorkflowExecutionDescription) -> NoWorkerError:
    """The error for a session whose worker runs and fails on it."""
    show = temporal_command("workflow", "show", "-w", seen.id)
    return NoWorkerError(
        f"session {seen.id!r} can't be asked: its worker fails on it (workflow task in failed state). It is safe and "
        f"goes on when a worker with corrected code runs; for the cause: {show}"
    )


def worker_lacks(session_id: str, what: str) -> NoWorkerError:
    """The error for a session whose worker lacks a key or a store.

    Args:
        session_id: The session.
        what: In the worker's words, see `worker_faults.lacked`.
    """
    return NoWorkerError(
        f"session {session_id!r} can't be asked: {LACKS} ({what}). It is safe and goes on when a worker that has it "
        f"runs; {GIVE_IT}"
    )


async def _unanswered(
    temporal: Client, seen: WorkflowExecutionDescription, what: str, joint: str = "; "
) -> NoWorkerError:
    if seen.status not in (None, WorkflowExecutionStatus.RUNNING):
        how = str(seen.status.name).lower() if seen.status is not None else ""
        what, joint = f"session {seen.id!r} has ended ({how}), and reading its conversation needs a worker", "; "
    return NoWorkerError(f"{what}{joint}{await start_command(temporal, seen.task_queue)}")
