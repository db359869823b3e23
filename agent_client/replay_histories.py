"""What a history says of itself: whose it is, what was started in it, which cycles are open. Runs nothing."""

import contextlib
import json
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.converter import DataConverter

from countersign.agent_client.errors import ClientError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import CYCLE_WORKFLOW, SESSION_WORKFLOW, STEP_ACTIVITY
from countersign.workflows.replayed import activity_label, child_label

_ENDS = frozenset(
    EventType.Value(f"EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_{how}")
    for how in ("COMPLETED", "FAILED", "CANCELED", "TIMED_OUT", "TERMINATED")
)


def kind_of(history: WorkflowHistory) -> str:
    """Whether it is the history of a "session" or of a "cycle".

    Raises:
        ClientError: If it is neither.
    """
    first = history.events[0].workflow_execution_started_event_attributes if history.events else None
    name = first.workflow_type.name if first else ""
    kinds = {SESSION_WORKFLOW: "session", CYCLE_WORKFLOW: "cycle"}
    if name not in kinds:
        raise ClientError(
            f"the history of {history.workflow_id!r} is of workflow type {name!r}; only {SESSION_WORKFLOW} and "
            f"{CYCLE_WORKFLOW} can be replayed here"
        )
    return kinds[name]


async def started_in(history: WorkflowHistory, converter: DataConverter) -> list[str]:
    """The activities and children that a history has, in order, in words."""
    found = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            given = event.activity_task_scheduled_event_attributes
            kind = given.activity_type.name
            args: list[Any] = []
            if kind == STEP_ACTIVITY:
                with contextlib.suppress(Exception):  # a key that is lost: the step stays without its name
                    args = await converter.decode(given.input.payloads[:1])
            found.append(activity_label(kind, args))
        elif event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            found.append(child_label(child.workflow_id))
    return found


def open_children(history: WorkflowHistory) -> list[str]:
    """Workflow ids of a session's cycles that had not ended."""
    found: dict[int, str] = {}
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            found[event.event_id] = child.workflow_id
        elif event.event_type in _ENDS:
            found.pop(getattr(event, event.WhichOneof("attributes") or "").initiated_event_id, None)
        elif event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
            found.pop(event.start_child_workflow_execution_failed_event_attributes.initiated_event_id, None)
    return list(found.values())


def read_history(file: Path) -> WorkflowHistory:
    """A history as `temporal workflow show --output json`, the Temporal UI or `make histories` wrote it.

    Raises:
        ClientError: If it is none.
    """
    try:
        given: JsonObject = json.loads(file.read_text())
        events = WorkflowHistory.from_json("unknown", given).events
    except Exception as error:  # whatever protobuf makes of JSON that is none of its own
        raise ClientError(
            f"{file} can't be read as a history ({type(error).__name__}: {error}); write one with: "
            "temporal workflow show --workflow-id ID --output json"
        ) from error
    first = events[0].workflow_execution_started_event_attributes if events else None
    history = WorkflowHistory((first and first.workflow_id) or file.stem, events)
    kind_of(history)
    return history
