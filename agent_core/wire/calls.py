"""What activities take and return: model calls, tool calls, steps."""

from typing import Any, Literal

from pydantic import Field

from countersign.agent_core.json_values import JsonObject, JsonValue
from countersign.agent_core.messages import Message, ToolResult, Usage, no_usage
from countersign.agent_core.wire.base import ErrorInfo, Wire
from countersign.agent_core.wire.names import PROTOCOL
from countersign.agent_core.wire.stored import StoredRange


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


class ModelResponse(Wire):
    """What a model answered."""

    stop_reason: str
    message: Message
    usage: Usage = Field(default_factory=no_usage)
    latency_ms: int = 0
    duration_s: float | None = Field(default=None, description="how long it worked, by the clock of where it ran")
    stored: list[StoredRange] = Field(default_factory=list, description="what its activity has put into storage")


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

    @property
    def status(self) -> str | None:
        """Of its result: whether the tool succeeded; None if there is none."""
        return self.result["status"] if self.result is not None else None


class StepCall(Wire):
    """Input of a durable step."""

    protocol: int = PROTOCOL
    agent: str
    step: str = Field(description="module and qualified name of the step's function")
    args: list[Any] = Field(default_factory=list)
    keywords: JsonObject = Field(default_factory=dict)
