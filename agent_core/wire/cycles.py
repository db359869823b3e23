"""What a cycle starts from, and what it leaves behind."""

from typing import Literal

from pydantic import Field

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, ToolResult, Usage, no_usage
from countersign.agent_core.wire.audit import AuditEntry
from countersign.agent_core.wire.base import ErrorInfo, Limits, Wire
from countersign.agent_core.wire.bounds import DEADLINE_S
from countersign.agent_core.wire.calls import ModelResponse
from countersign.agent_core.wire.names import PROTOCOL
from countersign.agent_core.wire.questions import InlineAnswer, Question, ShownCall
from countersign.agent_core.wire.recovery import RecoveredCall
from countersign.agent_core.wire.stored import Piece


class Pending(Wire):
    """A model's message whose calls are not all done: what a resumed cycle starts from."""

    origin_cycle: int
    message: Message
    results: dict[int, ToolResult] = Field(default_factory=dict, description="by the call's place")
    questions: list[Question] = Field(default_factory=list)
    executions: dict[int, int] = Field(default_factory=dict, description="finished runs of each call")
    unknown: dict[int, str] = Field(default_factory=dict, description="calls that may have run, and why")
    not_run: list[int] = Field(default_factory=list, description="those of `unknown` that surely have not run")
    issued: dict[int, ShownCall] = Field(default_factory=dict, description="those of `unknown`, as they were issued")
    recovered: dict[int, RecoveredCall] = Field(
        default_factory=dict, description="calls that a failed cycle ran, whose results no hook has seen yet"
    )
    remembered: JsonObject = Field(default_factory=dict, description="what handlers found out about a call, once")
    inline: dict[int, list[InlineAnswer]] = Field(default_factory=dict, description="inline answers, by call")
    edits: dict[int, JsonObject] = Field(default_factory=dict, description="inputs from approvers, by call")
    doubted: bool = Field(default=False, description="its calls were declared unknown because of a reset")
    outputs: dict[int, JsonObject] = Field(default_factory=dict, description="structured outputs, by the call's place")


class TurnProgress(Wire):
    """What one invocation has used so far; it survives pauses and hand-overs."""

    usage: Usage = Field(default_factory=no_usage)
    latency_ms: int = Field(default=0, description="time spent in the model, in milliseconds")
    cycles: int = 0
    guides: int = 0
    refused: dict[str, int] = Field(default_factory=dict, description="refusals by the digest of the call")
    forced: bool = Field(default=False, description="the model has been asked for its structured output")


class CycleInput(Wire):
    """Everything that a cycle starts from, but the conversation, which travels beside it in pieces."""

    protocol: int = PROTOCOL
    agent: str
    session_id: str
    session_run: str = Field(default="", description="tells sessions apart that have had the same id")
    after_reset: bool = Field(default=False, description="this part of the session may have happened before")
    cycle: int = Field(description="number of the cycle in its session, from 1")
    opens: Literal["prompt", "resume", "continue"] = "prompt"
    prompt: list[Message] = Field(default_factory=list)
    pending: Pending | None = None
    agent_state: JsonObject = Field(default_factory=dict)
    handlers: JsonObject = Field(default_factory=dict)
    invocation_state: JsonObject = Field(default_factory=dict)
    limits: Limits = Field(default_factory=Limits)
    progress: TurnProgress = Field(default_factory=TurnProgress)
    model_calls: int = Field(default=0, description="model calls of the session so far")
    fresh: bool = Field(
        default=False, description="no cycle has left anything yet: the agent's own messages and state come first"
    )
    response: ModelResponse | None = Field(
        default=None, description="of a model, which a failed cycle had not used: it stands for the first call"
    )
    handover_after_s: float = 2.0
    default_deadline_s: float = DEADLINE_S
    worker_deadline: bool = Field(
        default=False, description="the session's start said none: that of the cycle's worker takes its place"
    )
    approval_ttl_s: float = 86_400.0
    pieces: int | None = Field(
        default=None, description="pieces of the conversation; after them come the references of those in storage"
    )
    unstored: list[int] = Field(default_factory=list, description="places of the pieces that are not in storage")


class CycleOutcome(Wire):
    """How a cycle ended (or a chain of cycles that shared one workflow), and what it leaves behind."""

    stop_reason: str
    last_cycle: int
    message: Message | None = Field(default=None, description="the model's last message")
    messages: list[Message] = Field(default_factory=list, description="added to the conversation")
    conversation: list[Message] | None = Field(default=None, description="set if hooks rewrote the earlier messages")
    pieces: list[Piece] | None = Field(
        default=None,
        description="in place of the two if some of the conversation is in storage: what follows on `kept`",
    )
    kept: int = Field(default=0, description="pieces, of those that the cycle got, which are still the first ones")
    gone: int = Field(default=0, description="messages before the new ones, fewer than there were")
    as_before: bool = Field(
        default=False, description="agent_state, handlers and invocation_state are what they were, and are not sent"
    )
    pending: Pending | None = None
    agent_state: JsonObject = Field(default_factory=dict)
    handlers: JsonObject = Field(default_factory=dict)
    invocation_state: JsonObject = Field(default_factory=dict)
    progress: TurnProgress = Field(default_factory=TurnProgress)
    model_calls: int = 0
    fresh: bool = Field(default=False, description="as the cycle got it, if the agent could not be built")
    resume: list[Message] | None = Field(default=None, description="AfterInvocationEvent.resume: prompt to go on with")
    structured_output: JsonObject | None = Field(default=None, description="what the turn has led to; it ends the turn")
    error: ErrorInfo | None = None
    audit: list[AuditEntry] = Field(default_factory=list)

    @property
    def goes_on(self) -> bool:
        """True if the turn goes on with the next cycle."""
        return self.stop_reason == "tool_use" and self.structured_output is None
