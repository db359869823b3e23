"""What the phases of one cycle share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from countersign.agent_core.cycle.callbacks import CallbackRunner
from countersign.agent_core.effects import Effects
from countersign.agent_core.messages import Message, Usage, add_usage, assistant_text
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.wire import AuditEntry, AuditEvent, CycleInput, ModelResponse, TurnProgress, timestamp

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


@dataclass
class CycleContext:
    """One cycle's agent, surroundings and running totals.

    Attributes:
        response: A model's answer that is still to be taken in the place of the first call.
        answered: The message whose calls run, as a recovery would find it without being told: the batch that is
            resumed, or what the model said before any hook heard it; None if it was not called.
        prompt_place: Where in the conversation the invocation began; None if that was not in this cycle.
        prompt: The messages that began it, as hooks left them.
    """

    agent: "Agent"
    given: CycleInput
    effects: Effects
    runner: CallbackRunner
    progress: TurnProgress
    invocation_state: dict[str, Any]
    model_calls: int
    output: OutputTool | None = None
    audit: list[AuditEntry] = field(default_factory=list)
    response: ModelResponse | None = field(init=False)
    answered: Message | None = field(init=False)
    prompt_place: int | None = None
    prompt: Sequence[Message] = ()

    def __post_init__(self) -> None:
        """Take what a recovery has handed on."""
        self.response = self.given.response
        self.answered = self.given.pending.message if self.given.pending else None

    def note(self, event: AuditEvent, **detail: Any) -> None:
        """Add a line to the audit trail."""
        moment = timestamp(self.effects.now())
        self.audit.append(AuditEntry(at=moment, event=event, cycle=self.given.cycle, detail=detail))

    def spend(self, usage: Usage) -> None:
        """Count what a handler's own model used as the turn's."""
        self.progress.usage = add_usage(self.progress.usage, usage)

    @property
    def cancelled(self) -> bool:
        """True if the turn was stopped, from outside or by `agent.cancel()`."""
        return self.effects.stop_requested or self.agent.cancellation.now

    @property
    def last_message(self) -> Message:
        """Of the conversation; an empty one of the assistant if there is none."""
        messages = self.agent.messages
        return messages[-1] if messages else assistant_text("")

    @property
    def limit_reached(self) -> str | None:
        """The cap that is used up, as a stop reason; None if none is, or if the call in question was made already."""
        limits, progress = self.given.limits, self.progress
        if self.response is not None:
            return None
        if limits.turns is not None and progress.cycles >= limits.turns:
            return "limit_turns"
        if limits.total_tokens is not None and progress.usage["totalTokens"] >= limits.total_tokens:
            return "limit_total_tokens"
        if limits.output_tokens is not None and progress.usage["outputTokens"] >= limits.output_tokens:
            return "limit_output_tokens"
        return None

    async def add_message(self, message: Message) -> None:
        """Add a message to the conversation, and say so."""
        await self.runner.add_message(message)


def cancel_text(value: bool | str, default: str) -> str:
    """The text of a cancellation: an empty text cancels too, with the default words."""
    return value if isinstance(value, str) and value else default
