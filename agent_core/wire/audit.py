"""The audit trail: its lines, and what they may be about."""

from typing import Literal, get_args

from pydantic import Field

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire.base import Wire

AuditEvent = Literal[
    "prompt_queued",
    "question_asked",
    "answered",
    "answer_unused",
    "refused",
    "expired",
    "question_withdrawn",
    "approval_void",
    "input_edited",
    "edit_refused",
    "batch_cancelled",
    "call_refused",
    "call_expired",
    "tool_started",
    "tool_ended",
    "result_recovered",
    "unknown_outcome_resolved",
    "direct_call",
    "conversation_reduced",
    "conversation_restored",
    "cycle_failed",
    "stop",
    "close",
    "turn_failed",
    "turn_ended",
]
"""What this version writes lines of the audit trail about."""

AUDIT_EVENTS = get_args(AuditEvent)


class AuditEntry(Wire):
    """One line of a session's audit trail.

    Attributes:
        event: An `AuditEvent`, or one of another version.
    """

    at: str
    event: str
    cycle: int | None = None
    detail: JsonObject = Field(default_factory=dict)
