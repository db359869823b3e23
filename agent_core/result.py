"""What calling an agent returns."""

from dataclasses import dataclass, field
from typing import Self

from pydantic import BaseModel

from countersign.agent_core.interrupts import Interrupt
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, Usage, message_text, no_usage
from countersign.agent_core.wire import TurnProgress


@dataclass
class Metrics:
    """What an invocation has used.

    Attributes:
        accumulated_usage: Tokens.
        cycle_count: Model calls that led to a message.
        accumulated_metrics: `latencyMs`, the time spent in the model, in milliseconds.
    """

    accumulated_usage: Usage = field(default_factory=no_usage)
    cycle_count: int = 0
    accumulated_metrics: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, progress: TurnProgress) -> Self:
        """What an invocation has used so far."""
        return cls(progress.usage, progress.cycles, {"latencyMs": progress.latency_ms})


@dataclass
class AgentResult:
    """The loop has stopped.

    Attributes:
        stop_reason: "end_turn", "interrupt", "cancelled", "limit_turns", "limit_total_tokens",
            "limit_output_tokens", or what else the model gave as its reason.
        message: The last message of the model.
        metrics: What the invocation has used.
        state: The invocation's `request_state`. A durable session's result has `agent.state` there, and this nowhere.
        interrupts: The open questions, if the loop stopped for them.
        structured_output: The object that the turn has led to, of the class that was asked for. The stop reason is
            then "tool_use", as in Strands, unless the model wrote it as text, or a hook ended the turn.
    """

    stop_reason: str
    message: Message
    metrics: Metrics = field(default_factory=Metrics)
    state: JsonObject = field(default_factory=dict)
    interrupts: list[Interrupt] | None = None
    structured_output: BaseModel | None = None

    def __str__(self) -> str:
        """The open questions, or the structured output as JSON, or the message's text."""
        if self.interrupts:
            return str([interrupt.to_dict() for interrupt in self.interrupts])
        if self.structured_output is not None:
            return self.structured_output.model_dump_json()
        text = message_text(self.message)
        return f"{text}\n" if text else ""
