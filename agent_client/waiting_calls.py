"""Tool calls that wait for a worker of a task queue of their own, as the server knows them."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client
from temporalio.service import RPCError

from countersign.agent_client.listing import quoted
from countersign.agent_client.translation import described
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import CYCLE_WORKFLOW, timestamp

MOST_CYCLES = 100
"""Running cycles that are looked at; of more, the newest are."""

_AT_ONCE = 20


@dataclass(frozen=True)
class WaitingCall:
    """A call that no worker has taken yet.

    Attributes:
        tool: Its tool.
        task_queue: Where it waits.
        since: Since when.
        until: When a person is asked instead; None if it waits for ever.
    """

    tool: str
    task_queue: str
    since: datetime
    until: datetime | None = None

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
            found += [call for call in calls if call.task_queue not in ("", task_queue)]
    return sorted(found, key=lambda call: call.since)


async def calls_that_wait(temporal: Client, session_id: str) -> list[WaitingCall]:
    """Calls of one session that wait on queues of their own.

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
    return [call for call in found if call.task_queue not in ("", session.task_queue)]


async def _of(temporal: Client, cycle: str) -> list[WaitingCall]:
    try:
        seen = await temporal.get_workflow_handle(cycle).describe()
    except RPCError:
        return []  # it has ended meanwhile
    return [
        _waiting(pending)
        for pending in seen.raw_description.pending_activities
        if pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    ]


def _waiting(pending: PendingActivityInfo) -> WaitingCall:
    since, options = pending.scheduled_time.ToDatetime(UTC), pending.activity_options
    wait = options.schedule_to_start_timeout.ToTimedelta()
    return WaitingCall(pending.activity_type.name, options.task_queue.name, since, since + wait if wait else None)
