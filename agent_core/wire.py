"""The shapes that cross a process boundary. They only grow: new fields have defaults.

Workflows, activities and clients in any language speak these. Each travels as plain JSON.
Times are ISO 8601 texts in UTC; durations end in `_s` (seconds).

One file on purpose, however long: it is the contract, and who speaks it from elsewhere reads it from top to bottom.
"""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from countersign.agent_core.json_values import JsonObject, JsonValue
from countersign.agent_core.messages import ContentBlock, Message, ToolResult, Usage, no_usage

PROTOCOL = 1

SESSION_WORKFLOW = "AgentSession"
CYCLE_WORKFLOW = "AgentCycle"
MODEL_ACTIVITY = "countersign.call_model"
STEP_ACTIVITY = "countersign.run_step"
READ_CYCLE_ACTIVITY = "countersign.read_cycle"
SEARCH_ATTRIBUTES_ACTIVITY = "countersign.search_attributes"
OUR_ACTIVITIES = "countersign."
"""How the types of these begin; the type of a tool's activity is the tool's name."""

RESPOND_SIGNAL = "respond"
PROMPT_SIGNAL = "prompt"
STOP_SIGNAL = "stop"
ANSWER_UPDATE = "answer"
INVOKE_UPDATE = "invoke"
CLOSE_UPDATE = "close"
INTERRUPTS_QUERY = "interrupts"
STATUS_QUERY = "status"
TRANSCRIPT_QUERY = "transcript"
AUDIT_QUERY = "audit"

MEMO_QUESTIONS = "countersign_questions"
SEARCH_AGENT = "CountersignAgent"
SEARCH_STATUS = "CountersignStatus"
SEARCH_PENDING = "CountersignPending"
SEARCH_APPROVERS = "CountersignApprovers"
SEARCH_DEADLINE = "CountersignDeadline"

INVOKING = "invoking"
"""The heartbeat that a tool's activity has recorded before it begins to run the tool."""

WORKER_READY = "countersign worker ready: agents "
"""Begins the line on standard error with which a worker says that it serves: their names follow, then "; " and more."""

MAX_VALUE_BYTES = 1_500_000
"""The largest single value that is sent (Temporal refuses 2 MB)."""

MAX_PROMPT_BYTES = MAX_VALUE_BYTES // 3
"""The largest prompt that is taken, so that it travels on with what comes of it."""

MAX_ARGUMENTS_BYTES = 1_900_000
"""The most that the arguments of one child, activity or run may weigh together: the 2 MB count for all of them."""

MAX_TASK_BYTES = 3_000_000
"""The most that one workflow task may issue (gRPC refuses 4 MB)."""


DEADLINE_S = 30 * 86_400.0
"""How long a question waits unless its session's options say otherwise."""


def cycle_id(session_id: str, cycle: int) -> str:
    """The workflow id of a session's cycle."""
    return f"{session_id}/cycle-{cycle}"


def timestamp(moment: datetime) -> str:
    """A moment as it stands on the wire: ISO 8601 in UTC."""
    return moment.isoformat(timespec="milliseconds")


class Wire(BaseModel):
    """Base of all wire shapes: unknown fields are ignored, so that both sides can grow."""

    model_config = ConfigDict(extra="ignore")


class Limits(Wire):
    """Caps on one invocation; checked before each model call. None means no cap."""

    turns: int | None = Field(default=None, ge=1, description="cycles")
    total_tokens: int | None = Field(default=None, ge=1)
    output_tokens: int | None = Field(default=None, ge=1)


class Answer(Wire):
    """What a person sent for one question, and how it was taken."""

    response: JsonValue = None
    responder: JsonObject | None = None
    comment: str | None = None
    at: str = ""
    said_at: str | None = Field(default=None, description="when it was said, if the sender claims that it was earlier")
    channel: str = ""

    @property
    def counts_from(self) -> str:
        """From when on an approval lapses: a claim can only make that sooner."""
        return self.said_at or self.at


class ShownCall(Wire):
    """A call as the person sees it: exactly what will run."""

    index: int = Field(description="place of the call in the model's message, from 0")
    tool_use_id: str
    tool: str
    input: JsonValue
    input_schema: JsonObject | None = None


QuestionScope = Literal["batch", "call", "tool", "core"]
QuestionStatus = Literal["open", "answered", "expired", "withdrawn", "settled"]


class Question(Wire):
    """An interrupt as people and programs outside see it.

    `scope` says who asks: a BeforeToolsEvent hook (batch), a BeforeToolCallEvent hook or handler
    (call), a tool's body (tool) or Countersign itself (core). `digest` binds an approval to name,
    reason, tools and inputs. `verdict` is what the asker's `evaluate` made of the answer.
    """

    id: str
    name: str
    reason: JsonValue = None
    calls: list[ShownCall] = Field(default_factory=list)
    digest: str
    answers: JsonObject = Field(default_factory=lambda: {"approve": "y", "deny": "n"})
    asked_at: str = ""
    deadline: str | None = None
    policy: JsonObject | None = None
    votes: list[JsonObject] = Field(default_factory=list)
    status: QuestionStatus = "open"
    scope: QuestionScope = "call"
    origin_cycle: int = 0
    index: int | None = Field(default=None, description="the call's place in the message; None for a batch")
    generation: int = 0
    answer: Answer | None = None
    verdict: bool | None = None
    edited: JsonObject | None = Field(default=None, description="the input that the answer put in its place")
    edited_tool: str | None = Field(default=None, description="the tool for which it did; that of the call if unset")
    fault: str | None = Field(
        default=None,
        description="why it is asked again, if the answer before it can't be used or does not hold any more",
    )


class InlineAnswer(Wire):
    """What a person said inline about a call: it holds for the call as it stood then."""

    name: str = Field(description="of the handler that asked")
    call: str = Field(description="digest of the call as it stood")
    response: Any = None
    at: str
    verdict: JsonObject | None = Field(
        default=None, description='`{"approved": ...}`, with "edit" if another input was approved; null until judged'
    )

    @property
    def approved(self) -> bool:
        """Whether it approves."""
        return self.verdict is not None and bool(self.verdict["approved"])


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
    recovered: dict[int, "RecoveredCall"] = Field(
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


class StoredSegment(Wire):
    """Messages of a conversation that are in external storage.

    `reference` is the payload that stands for them (a `temporal.api.common.v1.Payload`, serialized, in base64); if
    they became small by compression, they are in it themselves. Whoever has the storage's driver and the codec
    decodes it to the list of messages.
    """

    messages: int = Field(ge=1, description="how many")
    bytes: int = Field(default=0, description="their size as JSON")
    reference: str


Piece = StoredSegment | list[Message]
"""A part of a conversation, as it travels."""


class StoredRange(Wire):
    """Messages of a call's conversation that its activity has put into storage."""

    start: int = Field(ge=0, description="place of the first one")
    segment: StoredSegment


class ModelResponse(Wire):
    """What a model answered."""

    stop_reason: str
    message: Message
    usage: Usage = Field(default_factory=no_usage)
    latency_ms: int = 0
    duration_s: float | None = Field(default=None, description="how long it worked, by the clock of where it ran")
    stored: list[StoredRange] = Field(default_factory=list, description="what its activity has put into storage")


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


class ErrorInfo(Wire):
    """An error as it travels: its type's name, its text, and what raised it."""

    type: str
    message: str
    origin: str = ""


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


class ModelCall(Wire):
    """Input of a model call; the conversation travels beside it in pieces."""

    protocol: int = PROTOCOL
    agent: str
    session_id: str
    cycle: int
    call: int = Field(description="model calls of the session before this one")
    system_prompt: str | None = None
    tools: list[str] = Field(default_factory=list, description="names of the tools that the model may call")
    output_tool: JsonObject | None = Field(default=None, description="one tool more: by it the model gives its result")
    tool_choice: JsonObject | None = Field(default=None, description="which tool it must call, in Strands' shape")
    invocation_state: JsonObject = Field(default_factory=dict)
    prompt: int | None = Field(
        default=None, description="so many of the last messages began the invocation, if this cycle did"
    )


class GivenAnswer(Wire):
    """An answer that a tool's body gets back from `tool_context.interrupt`."""

    response: JsonValue = None
    reason_digest: str = Field(description="of the reason that was shown with the question")


class ToolCall(Wire):
    """Input of a tool call: what was signed, with the digest that it must match."""

    protocol: int = PROTOCOL
    agent: str
    session_id: str
    cycle: int
    index: int
    tool: str
    tool_use_id: str
    input: JsonObject
    digest: str = Field(description="json_values.digest of {tool, input}")
    idempotency_key: str
    run: str | None = Field(default=None, description="of the workflow that makes the call; another one's is a reset")
    agent_state: JsonObject = Field(default_factory=dict)
    invocation_state: JsonObject = Field(default_factory=dict)
    answers: dict[str, GivenAnswer] = Field(default_factory=dict, description="by interrupt name")
    message: Message | None = Field(
        default=None, description="the message that `index` counts in, if hooks made it other than the model answered"
    )
    not_after: str | None = Field(default=None, description="ISO time after which its approval has lapsed")


class ToolAsk(Wire):
    """A question that a tool's body asks."""

    name: str
    reason: JsonValue = None
    answers: JsonObject | None = None


class ToolOutcome(Wire):
    """How a tool call ended.

    result         it ran; `result` holds what the model gets (error status if it raised)
    interrupt      its body asks; `ask` holds the question
    unknown        a person must say what now: it may have run and nobody knows, or (`not_run`) nobody has
                   run it; `detail` says what is known
    never_started  it surely did not run; `detail` says why
    lapsed         it surely did not run: no worker had begun with it when its approval lapsed
    """

    kind: Literal["result", "interrupt", "unknown", "never_started", "lapsed"]
    result: ToolResult | None = None
    error: ErrorInfo | None = None
    ask: ToolAsk | None = None
    detail: str = ""
    not_run: bool = Field(default=False, description="of an unknown outcome: surely nobody has run it so far")
    state_set: JsonObject = Field(default_factory=dict, description="keys of agent.state that the tool wrote")
    state_deleted: list[str] = Field(default_factory=list)
    duration_s: float | None = Field(default=None, description="how long it ran, by the clock of where it ran")


class StepCall(Wire):
    """Input of a durable step."""

    protocol: int = PROTOCOL
    agent: str
    step: str = Field(description="module and qualified name of the step's function")
    args: list[Any] = Field(default_factory=list)
    keywords: JsonObject = Field(default_factory=dict)


class RecoveredCall(Wire):
    """What a failed cycle's history says of one tool call."""

    index: int
    status: Literal["finished", "never_started", "unknown"]
    call: ToolCall | None = Field(default=None, description="what was issued, without the agent's state")
    outcome: ToolOutcome | None = None
    detail: str = ""


class RecoveredCycle(Wire):
    """What a failed cycle's history says of one of its cycles, in order."""

    cycle: int
    response: ModelResponse | None = None
    message: Message | None = Field(default=None, description="as hooks left it, if other than in the response")
    calls: list[RecoveredCall] = Field(default_factory=list)
    earlier: list[RecoveredCall] = Field(
        default_factory=list, description="finished runs of calls that ran again, without their results"
    )
    prompt: list[Message] | None = Field(default=None, description="the invocation's, as hooks left it, if known")
    opened_with: list[Message] = Field(
        default_factory=list, description="what stood after the last assistant message when its model was called"
    )


class Recovery(Wire):
    """What a failed cycle workflow had finished."""

    reason: str
    lost: bool = Field(default=False, description="its history is gone or can't be read: what it did is not known")
    cycles: list[RecoveredCycle] = Field(default_factory=list)


CYCLE_OVERRUN_S = 86_400.0
"""A cycle that lasts longer counts as stuck, if its session's start says nothing else."""


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


PromptContent = str | list[ContentBlock]
