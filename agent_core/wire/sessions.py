"""What a session is started with, what it returns, and how it takes answers."""

from typing import Literal

from pydantic import Field

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import ContentBlock, Message, Usage, no_usage
from countersign.agent_core.wire.base import ErrorInfo, Limits, Wire
from countersign.agent_core.wire.bounds import CYCLE_OVERRUN_S
from countersign.agent_core.wire.questions import Question

PromptContent = str | list[ContentBlock]


class SessionOptions(Wire):
    """What a session's starter may set; every field has a default."""

    lifetime: Literal["turn", "open"] = "turn"
    resume: Literal["each", "all"] = "each"
    limits: Limits = Field(default_factory=Limits)
    invocation_state: JsonObject = Field(default_factory=dict)
    handover_after_s: float = Field(default=2.0, ge=0)
    idle_timeout_s: float = Field(default=30 * 86_400.0, gt=0)
    deadline_s: float | None = Field(default=None, gt=0, description="of each question; null for the worker's default")
    approval_ttl_s: float = Field(default=86_400.0, gt=0)
    cycle_overrun_s: float = Field(default=CYCLE_OVERRUN_S, gt=0, description="when a cycle counts as stuck")
    continue_after_events: int | None = Field(default=None, gt=0, description="history events before continue-as-new")


class SessionResult(Wire):
    """What a session's workflow returns, and what `invoke` returns each time the loop stops."""

    stop_reason: str
    message: Message | None = None
    state: JsonObject = Field(default_factory=dict)
    usage: Usage = Field(default_factory=no_usage)
    latency_ms: int = Field(default=0, description="time spent in the model, in milliseconds")
    cycles: int = 0
    interrupts: list[Question] = Field(default_factory=list)
    error: ErrorInfo | None = None
    turn: int = 0
    structured_output: JsonObject | None = Field(
        default=None, description="of an agent with a structured_output_model; the stop reason is then tool_use, mostly"
    )


class AcceptedAnswer(Wire):
    """One answer of a batch that was taken."""

    id: str
    name: str
    status: Literal["accepted", "already_recorded"]


class AnswerReceipt(Wire):
    """What `answer` returns: what was taken and what is still open."""

    accepted: list[AcceptedAnswer]
    open: list[str] = Field(default_factory=list, description="ids of the questions that still wait")
