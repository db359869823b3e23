"""The audit trail: its lines, and what they may be about."""

from pydantic import Field

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire.base import Wire

AUDIT_EVENTS = (
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
)
"""What a line of the audit trail may be about; later versions may have more."""


class AuditEntry(Wire):
    """One line of a session's audit trail."""

    at: str
    event: str
    cycle: int | None = None
    detail: JsonObject = Field(default_factory=dict)
