"""Sessions that somebody has paused in Temporal, which its servers allow from 1.32 on if they are told to.

The SDK's enum of statuses lacks that one (temporalio 1.35): reading a paused workflow, alone or anywhere in a list,
raises ValueError. Where this is imported it counts as running: it has not ended, and goes on when it is unpaused.
"""

from temporalio.client import WorkflowExecutionStatus

from countersign.agent_client.errors import NoWorkerError
from countersign.agent_client.shell import temporal_command

_PAUSED = 8
"""WORKFLOW_EXECUTION_STATUS_PAUSED of Temporal's API."""


def _known(statuses: type[WorkflowExecutionStatus], value: object) -> WorkflowExecutionStatus | None:
    return statuses.RUNNING if value == _PAUSED else None


WorkflowExecutionStatus._missing_ = classmethod(_known)  # type: ignore[assignment,method-assign]  # Enum's own hook


def is_paused(session_id: str) -> NoWorkerError:
    """The error for a paused session that was asked: the server passes nothing on to it."""
    unpause = temporal_command("workflow", "unpause", "-w", session_id)
    return NoWorkerError(f"session {session_id!r} is paused in Temporal, and goes on after: {unpause}")
