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
from countersign.agent_client.shell import how_to_start, word
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


async def pollers(temporal: Client, task_queue: str, kind: Literal["workflow", "activity"]) -> list[Poller]:
    """Who has asked a task queue for work in the last five minutes.

    Raises:
        RPCError: If the server does not say.
    """
    request = DescribeTaskQueueRequest(
        namespace=temporal.namespace,
        task_queue=TaskQueue(name=task_queue),
        task_queue_type=TaskQueueType.Value(f"TASK_QUEUE_TYPE_{kind.upper()}"),
    )
    answer = await temporal.workflow_service.describe_task_queue(request, timeout=_RPC_TIMEOUT)
    return [
        Poller(
            item.identity,
            item.last_access_time.ToDatetime(UTC),
            item.deployment_options.deployment_name if item.deployment_options.build_id else "",
            item.deployment_options.build_id,
        )
        for item in answer.pollers
    ]


async def last_poll(temporal: Client, task_queue: str) -> datetime | None:
    """When a worker last polled a task queue for workflows, as far as the server knows.

    Returns:
        The time of the last poll; None if nobody polls. A server that does not say counts as polled
        now: whoever asks wants to know that there is surely no worker.
    """
    now = datetime.now(UTC)
    try:
        polling = await pollers(temporal, task_queue, "workflow")
    except RPCError:
        return now
    newest = max((poller.last_seen for poller in polling), default=None)
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


def no_worker(seen: WorkflowExecutionDescription) -> NoWorkerError:
    """The error for a session that can't be asked because surely no worker runs, with the next step."""
    return _unanswered(seen, f"no worker answers for session {seen.id!r}, which is safe and goes on when one runs")


def no_answer(seen: WorkflowExecutionDescription, waited_s: float | None = None) -> NoWorkerError:
    """The error for a session that did not answer: its worker may be gone, or busy.

    Args:
        seen: The session.
        waited_s: For how long it was waited, in seconds; None if that is not known.
    """
    within = f" within {waited_s:g} s" if waited_s is not None else ""
    what = f"session {seen.id!r}, which is safe, did not answer{within}: its worker is busy or gone"
    return _unanswered(seen, f"{what}; ask again, and if no worker runs", ", ")


def task_fails(seen: WorkflowExecutionDescription) -> NoWorkerError:
    """The error for a session whose worker runs and fails on it."""
    return NoWorkerError(
        f"session {seen.id!r} can't be asked: its worker fails on it (workflow task in failed state). It is safe and "
        f"goes on when a worker with corrected code runs; for the cause: temporal workflow show -w {word(seen.id)}"
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


def _unanswered(seen: WorkflowExecutionDescription, what: str, joint: str = "; ") -> NoWorkerError:
    if seen.status not in (None, WorkflowExecutionStatus.RUNNING):
        how = str(seen.status.name).lower() if seen.status is not None else ""
        what, joint = f"session {seen.id!r} has ended ({how}), and reading its conversation needs a worker", "; "
    return NoWorkerError(f"{what}{joint}{how_to_start(seen.task_queue)}")
