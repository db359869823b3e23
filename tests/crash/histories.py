"""Looks through the histories of a session, all its runs and all its cycles, for workflow tasks that failed."""

from collections.abc import AsyncIterator

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

BENIGN = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
)
"""The server's words for "something came in meanwhile" and "too much did": decide again. No fault of anybody's."""


async def events_of(client: Client, workflow_id: str, run: str | None = None) -> list[HistoryEvent]:
    """The history of a run; of the latest one if None."""
    handle = client.get_workflow_handle(workflow_id, run_id=run)
    return [event async for event in handle.fetch_history_events()]


async def runs_of(client: Client, session_id: str) -> list[list[HistoryEvent]]:
    """The histories of all runs of a session, the latest first."""
    found: list[list[HistoryEvent]] = []
    run: str | None = None
    while True:
        found.append(await events_of(client, session_id, run))
        run = found[-1][0].workflow_execution_started_event_attributes.continued_execution_run_id
        if not run:
            return found


async def children_of(client: Client, session_id: str) -> AsyncIterator[tuple[str, str]]:
    """(workflow id, run id) of the cycles that a session has started."""
    for events in await runs_of(client, session_id):
        for event in events:
            if event.HasField("child_workflow_execution_started_event_attributes"):
                child = event.child_workflow_execution_started_event_attributes.workflow_execution
                yield child.workflow_id, child.run_id


async def failed_tasks(client: Client, session_id: str) -> list[str]:
    """Failed workflow tasks of a session and its cycles, in words."""
    histories = await runs_of(client, session_id)
    histories += [[*await events_of(client, child, run)] async for child, run in children_of(client, session_id)]
    return [failure for events in histories for failure in _failures(events)]


def _failures(events: list[HistoryEvent]) -> list[str]:
    return [
        f"{WorkflowTaskFailedCause.Name(failed.cause)}: {failed.failure.message}"
        for event in events
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
        and (failed := event.workflow_task_failed_event_attributes).cause not in BENIGN
    ]
