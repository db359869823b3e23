"""Calls of cycles that run or wait at the moment, as the server knows them. No worker is asked."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCError

from countersign.agent_client.builds import pinned_to
from countersign.agent_client.listing import quoted
from countersign.agent_client.translation import described
from countersign.agent_client.unreadable import READING_ERRORS
from countersign.agent_client.workers import Build
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import CYCLE_WORKFLOW, MODEL_ACTIVITY, STEP_ACTIVITY, timestamp

MOST_CYCLES = 100
"""Running cycles that are looked at; of more, the newest are."""

_AT_ONCE = 20

_FAILURE_CHARS = 200
"""Of a failure's words, which may quote what a vendor sent."""

_KINDS: "dict[str, Literal['model', 'step']]" = {MODEL_ACTIVITY: "model", STEP_ACTIVITY: "step"}

_WITH_A_WORKER = (
    PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
    PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
)


@dataclass(frozen=True)
class PendingCall:
    """A call that a cycle waits for.

    Attributes:
        kind: "tool", or a "model" or "step" of the agent.
        name: Of the tool; else of the activity.
        state: "running" in a worker's hands; "waiting" for a worker, or for its next attempt.
        since: Since when it is that; of one whose next attempt is to come, when it does.
        attempt: Which one runs or comes next, from 1.
        task_queue: Where its workers are.
        until: When a person is asked if no worker takes it; None if it waits for ever.
        build: The build that its cycle is pinned to; None if it is to none.
        failure: Why the attempt before failed, in short; "" if there was none, or that can't be read here.
    """

    kind: Literal["tool", "model", "step"]
    name: str
    state: Literal["running", "waiting"]
    since: datetime
    attempt: int
    task_queue: str
    until: datetime | None = None
    build: Build | None = None
    failure: str = ""

    @property
    def may_have_run(self) -> bool:
        """False if no worker has ever taken it."""
        return self.state == "running" or self.attempt > 1

    def as_json(self) -> JsonObject:
        """As plain JSON, times as on the wire."""
        return {
            "kind": self.kind,
            "tool": self.name if self.kind == "tool" else None,
            "state": self.state,
            "since": timestamp(self.since),
            "attempt": self.attempt,
            "failure": self.failure or None,
        }


@dataclass(frozen=True)
class WaitingCall:
    """A call that no worker has taken yet.

    Attributes:
        tool: Its tool.
        task_queue: Where it waits.
        since: Since when.
        until: When a person is asked instead; None if it waits for ever.
        build: The build that its cycle is pinned to; None if it is to none.
    """

    tool: str
    task_queue: str
    since: datetime
    until: datetime | None = None
    build: Build | None = None

    def as_json(self) -> JsonObject:
        """As plain JSON, times as on the wire."""
        until = timestamp(self.until) if self.until else None
        return {"tool": self.tool, "task_queue": self.task_queue, "since": timestamp(self.since), "until": until}


async def waiting_calls(temporal: Client, task_queue: str) -> list[WaitingCall]:
    """Calls of a queue's agents that wait on other queues.

    Args:
        temporal: Temporal's client.
        task_queue: The agents' own queue.

    Raises:
        RPCError: If the server does not list workflows.
    """
    query = f"WorkflowType = '{CYCLE_WORKFLOW}' AND ExecutionStatus = 'Running' AND TaskQueue = '{quoted(task_queue)}'"
    names = [cycle.id async for cycle in temporal.list_workflows(query, limit=MOST_CYCLES)]
    found: list[WaitingCall] = []
    for begin in range(0, len(names), _AT_ONCE):
        for calls in await asyncio.gather(*(_of(temporal, name) for name in names[begin : begin + _AT_ONCE])):
            found += _elsewhere(calls, task_queue)
    return sorted(found, key=lambda call: call.since)


async def session_calls(temporal: Client, session_id: str) -> tuple[list[PendingCall], list[WaitingCall]]:
    """Calls of one session that run or wait, the oldest first; and those of them that wait on queues of their own.

    Raises:
        SessionNotFoundError: If there is no such session.
        ConnectionFailedError, AccessDeniedError: If the server can't be asked.
    """
    session = await described(temporal, session_id)
    cycles = [
        child.workflow_id
        for child in session.raw_description.pending_children
        if child.workflow_type_name == CYCLE_WORKFLOW
    ]
    found = [call for calls in [await _of(temporal, cycle) for cycle in cycles] for call in calls]
    return sorted(found, key=lambda call: call.since), _elsewhere(found, session.task_queue)


def _elsewhere(calls: list[PendingCall], task_queue: str) -> list[WaitingCall]:
    """Those that wait for a worker of another queue than the agents' own."""
    return [
        WaitingCall(call.name, call.task_queue, call.since, call.until, call.build)
        for call in calls
        if call.state == "waiting" and call.task_queue not in ("", task_queue)
    ]


async def _of(temporal: Client, cycle: str) -> list[PendingCall]:
    try:
        seen = (await temporal.get_workflow_handle(cycle).describe()).raw_description
    except RPCError:
        return []  # it has ended meanwhile
    build = pinned_to(seen.workflow_execution_info.versioning_info)
    return [
        _call(pending, build, await failure_of(temporal.data_converter, pending)) for pending in seen.pending_activities
    ]


async def failure_of(converter: DataConverter, pending: PendingActivityInfo) -> str:
    """Why the last attempt of a call failed, in short; "" if none did, or if that can't be read here.

    Args:
        converter: Decodes it: with encryption on, its words are for those who have the key.
        pending: The call.
    """
    if not pending.HasField("last_failure"):
        return ""
    try:
        error = await converter.decode_failure(pending.last_failure)
    except READING_ERRORS:
        return ""
    kind = error.type if isinstance(error, ApplicationError) and error.type else type(error).__name__
    text = error.message if isinstance(error, FailureError) else str(error)
    found = f"{kind}: {text}"
    return found if len(found) <= _FAILURE_CHARS else f"{found[: _FAILURE_CHARS - 1]}…"


def _call(pending: PendingActivityInfo, build: Build | None, failure: str) -> PendingCall:
    name, options, runs = pending.activity_type.name, pending.activity_options, pending.state in _WITH_A_WORKER
    since = (pending.last_started_time if runs else pending.scheduled_time).ToDatetime(UTC)
    wait = options.schedule_to_start_timeout.ToTimedelta()
    return PendingCall(
        _KINDS.get(name, "tool"),
        name,
        "running" if runs else "waiting",
        since,
        max(1, pending.attempt),
        options.task_queue.name,
        since + wait if wait and not runs else None,
        build,
        failure,
    )
