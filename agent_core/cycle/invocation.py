"""The two ends of an invocation: what hooks make of its prompt, and whether they go on after its result."""

import copy
from typing import Any

from pydantic import BaseModel

from countersign.agent_core.cycle.context import CycleContext, cancel_text
from countersign.agent_core.errors import CallbackError
from countersign.agent_core.hooks.events import AfterInvocationEvent, BeforeInvocationEvent
from countersign.agent_core.interrupts import as_interrupt
from countersign.agent_core.messages import Message, shape_fault, user_message
from countersign.agent_core.result import AgentResult, Metrics
from countersign.agent_core.wire import CycleOutcome


async def before_invocation(context: CycleContext) -> tuple[list[Message], str | None]:
    """Let hooks and handlers see the prompt.

    Args:
        context: The cycle; its conversation is without the prompt yet.

    Returns:
        The messages to add, and the words of whoever denied the invocation; None if nobody did.

    Raises:
        CallbackError: If a hook or handler fails, or leaves something else than messages.
    """
    prompt = copy.deepcopy(context.given.prompt)
    event = BeforeInvocationEvent(context.agent, invocation_state=context.invocation_state, messages=prompt)
    await context.runner.fire(event)
    added = event.messages if event.messages is not None else prompt
    denied = None if event.cancel is False else cancel_text(event.cancel, "invocation denied by hook")
    usable = _usable(added, "BeforeInvocationEvent", "event.messages")
    if context.given.opens == "prompt":
        context.prompt_place, context.prompt = len(context.agent.messages), usable
    return usable, denied


async def after_invocation(context: CycleContext, outcome: CycleOutcome, output: BaseModel | None) -> None:
    """Let hooks and handlers see the result; a prompt with which they go on is put into the outcome.

    Args:
        context: The cycle.
        outcome: How the turn ended, or paused.
        output: The object that it led to, if any.

    Raises:
        CallbackError: If a hook or handler fails, or goes on with something else than a prompt.
    """
    questions = outcome.pending.questions if outcome.pending else []
    result = AgentResult(
        stop_reason=outcome.stop_reason,
        message=outcome.message or context.last_message,
        metrics=Metrics.of(context.progress),
        state=context.invocation_state.get("request_state", {}),
        interrupts=[as_interrupt(question) for question in questions if question.status == "open"] or None,
        structured_output=output,
    )
    event = AfterInvocationEvent(context.agent, invocation_state=context.invocation_state, result=result)
    await context.runner.fire(event)
    ended = outcome.stop_reason in ("interrupt", "failed", "cancelled") or outcome.stop_reason.startswith("limit_")
    if event.resume is not None and not ended:
        outcome.resume = _usable(_as_messages(event.resume), "AfterInvocationEvent", "event.resume")


def _usable(messages: Any, event: str, what: str) -> list[Message]:
    """Messages that a hook has put into an event.

    Raises:
        CallbackError: If they are none.
    """
    fault = shape_fault(messages)
    if fault is not None:
        raise CallbackError(event, TypeError(f"{what} is unusable: {fault}"))
    found: list[Message] = messages
    return found


def _as_messages(given: Any) -> Any:
    """A prompt in any form that an agent takes, as messages; anything else as it is."""
    if isinstance(given, str):
        return [user_message(given)]
    if isinstance(given, list) and given and all(isinstance(item, dict) and "role" in item for item in given):
        return given
    return [user_message(given)] if isinstance(given, list) else given
