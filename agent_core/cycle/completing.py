"""Completes a cycle's outcome with what the cycle leaves behind: something that a session can take over."""

from collections.abc import Sequence

from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.messages import Message, mended, shape_fault
from countersign.agent_core.wire import CycleOutcome, ErrorInfo


def complete(outcome: CycleOutcome, context: CycleContext, before: Sequence[Message]) -> None:
    """Fill in what the cycle leaves behind.

    Args:
        outcome: How the cycle ended; it is changed.
        context: The cycle.
        before: The conversation that it began with, as the very same objects.
    """
    messages = context.agent.messages
    count = len(before)
    if len(messages) >= count and all(left is right for left, right in zip(messages, before, strict=False)):
        outcome.messages = messages[count:]
    else:
        outcome.conversation = messages
    _mend(outcome, context)
    if outcome.conversation is not None:
        outcome.gone = len(before) - _before_new(outcome.conversation, before)
    outcome.agent_state = context.agent.state.get()
    outcome.invocation_state = context.invocation_state
    context.progress.guides = context.runner.guides
    outcome.progress, outcome.model_calls, outcome.audit = context.progress, context.model_calls, context.audit


def _before_new(messages: Sequence[Message], before: Sequence[Message]) -> int:
    """How many messages stand before the new ones: up to the last that was there when the cycle began."""
    if len(messages) > len(before) and list(messages[: len(before)]) == list(before):
        return len(before)  # a hook has put copies in their place
    old = {id(message) for message in before}
    return max((place + 1 for place, message in enumerate(messages) if id(message) in old), default=0)


def _mend(outcome: CycleOutcome, context: CycleContext) -> None:
    """Fail the turn if hooks have left something else than messages, which no session could take over."""
    rewritten = outcome.conversation is not None
    fault = shape_fault(outcome.conversation if rewritten else outcome.messages)
    fault = fault or shape_fault(context.agent.messages, deep=False) or _fault_of(outcome.message)
    if fault is None:
        return
    kept = mended(context.agent.messages, "The turn failed; what became of this call is not known.")
    outcome.messages, outcome.conversation, outcome.pending = [], kept, None
    outcome.resume, outcome.message = None, kept[-1] if kept else None
    outcome.stop_reason = "failed"
    text = f"agent.messages has been made unusable, by a hook or handler: {fault}"
    outcome.error = outcome.error or ErrorInfo(type="TypeError", message=text)
    context.note("turn_failed", error=outcome.error.model_dump())


def _fault_of(message: Message | None) -> str | None:
    return shape_fault([message]) if message is not None else None
