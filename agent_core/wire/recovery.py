"""What the history of a failed cycle says."""

from typing import Literal

from pydantic import Field

from countersign.agent_core.messages import Message
from countersign.agent_core.wire.base import Wire
from countersign.agent_core.wire.calls import ModelResponse, ToolCall, ToolOutcome


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
