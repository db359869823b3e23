"""Tool calls that wait for a worker of a task queue of their own, as the server knows them."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError

from countersign.agent_client.listing import quoted
from countersign.agent_core.wire import CYCLE_WORKFLOW

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
    """

    tool: str
    task_queue: str
    since: datetime


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


async def _of(temporal: Client, cycle: str) -> list[WaitingCall]:
    try:
        described = await temporal.get_workflow_handle(cycle).describe()
    except RPCError:
        return []  # it has ended meanwhile
    return [
        WaitingCall(
            pending.activity_type.name,
            pending.activity_options.task_queue.name,
            pending.scheduled_time.ToDatetime(UTC),
        )
        for pending in described.raw_description.pending_activities
        if pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
    ]
