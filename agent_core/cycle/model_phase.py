"""The first half of a cycle: hooks around the model call, and the call."""

import copy
from typing import cast

from countersign.agent_core.cycle.context import CycleContext, cancel_text
from countersign.agent_core.errors import CallbackError, RetryLimitError
from countersign.agent_core.hooks.events import AfterModelCallEvent, BeforeModelCallEvent, ModelStopResponse
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, add_usage, assistant_text, tool_uses
from countersign.agent_core.wire import ModelCall, ModelResponse

ATTEMPT_LIMIT = 50
"""The most tries of one model call that hooks may ask for."""

CANCELLED_TEXT = "Cancelled by user"

_COMPLETE = frozenset({"tool_use", "end_turn", "stop_sequence"})
"""Reasons to stop after which the calls of a message are whole. After any other one their input may be cut."""


async def call_model(context: CycleContext) -> ModelStopResponse | None:
    """Call the model, as often as hooks ask for, and add its message to the conversation.

    Returns:
        The message and why the model stopped; "tool_use" only if it asks for tools. None if a hook discarded the
        message, and a limit or a stop lets no other call follow.

    Raises:
        CallbackError: If a hook or handler fails.
        Exception: What the model raised, if no hook retries.
    """
    for _ in range(ATTEMPT_LIMIT):
        response = await _attempt(context)
        if response is not None:
            break
        if context.limit_reached is not None or context.effects.stop_requested:
            return None
    else:
        text = f"hooks asked for a retry of one model call {ATTEMPT_LIMIT} times; let the hook give up after some tries"
        raise CallbackError("AfterModelCallEvent", RetryLimitError(text))
    if response.stop_reason not in _COMPLETE:
        response.message = _without_cut_calls(response.message, response.stop_reason)
    elif (response.stop_reason == "tool_use") != bool(tool_uses(response.message)):
        response.stop_reason = "tool_use" if tool_uses(response.message) else "end_turn"
    context.progress.cycles += 1
    await context.add_message(response.message)
    return response


async def _attempt(context: CycleContext) -> ModelStopResponse | None:
    """One try; None if a hook discarded it."""
    before = BeforeModelCallEvent(context.agent, invocation_state=context.invocation_state)
    await context.runner.fire(before)
    if before.cancel is not False:
        text = cancel_text(before.cancel, "model call denied by hook")
        return await _after(context, ModelStopResponse(assistant_text(text), "end_turn"))
    if context.agent.cancellation.now:
        return await _cancelled(context)
    try:
        answer = await _call(context)
    except CallbackError:
        raise
    except Exception as error:
        after = AfterModelCallEvent(context.agent, invocation_state=context.invocation_state, exception=error)
        await context.runner.fire(after)
        if after.retry:
            return None
        raise
    if answer is None:
        return await _cancelled(context)
    context.answered = answer.message
    context.progress.usage = add_usage(context.progress.usage, answer.usage)
    context.progress.latency_ms += answer.latency_ms
    if context.agent.cancellation.now:  # while it answered: nobody wants the answer any more
        return await _cancelled(context)
    return await _after(context, ModelStopResponse(copy.deepcopy(answer.message), answer.stop_reason))


async def _cancelled(context: CycleContext) -> ModelStopResponse | None:
    """The words of a cancellation in the place of the model's answer."""
    response = await _after(context, ModelStopResponse(assistant_text(CANCELLED_TEXT), "cancelled"))
    if response is not None and context.agent.cancellation.message is not None:
        response.message = assistant_text(context.agent.cancellation.message)
    return response


async def _call(context: CycleContext) -> ModelResponse | None:
    if context.response is not None:  # a failed cycle has called; it is counted
        recorded, context.response = context.response, None
        return recorded
    output, names = context.output, context.agent.tool_registry.names()
    forced = output is not None and context.progress.forced
    call = ModelCall(
        agent=context.given.agent,
        session_id=context.given.session_id,
        cycle=context.given.cycle,
        call=context.model_calls,
        system_prompt=context.agent.system_prompt,
        # A forced model is told of that tool alone: some take no tool_choice.
        tools=[] if forced else [name for name in names if output is None or name != output.tool_name],
        output_tool=cast(JsonObject, output.tool_spec) if output else None,
        tool_choice={"tool": {"name": output.tool_name}} if output and forced else None,
        invocation_state=context.invocation_state,
        prompt=_prompt_length(context),
    )
    context.model_calls += 1
    return await context.effects.call_model(call, context.agent.messages)


async def _after(context: CycleContext, response: ModelStopResponse) -> ModelStopResponse | None:
    event = AfterModelCallEvent(context.agent, invocation_state=context.invocation_state, stop_response=response)
    await context.runner.fire(event)
    return None if event.retry else response


def _prompt_length(context: CycleContext) -> int | None:
    """How many of the last messages there are from the prompt on; None if nobody can tell, or it came earlier.

    Hooks may have cut what is before it, or put other messages in its place.
    """
    messages, first = context.agent.messages, next(iter(context.prompt), None)
    if context.prompt_place is None:
        return None
    left = max(0, len(messages) - context.prompt_place)
    known = left if left > 0 or first is None else None
    return next((count for count, message in enumerate(reversed(messages), 1) if message == first), known)


def _without_cut_calls(message: Message, stop_reason: str) -> Message:
    """A message that was cut off, with its calls as text: their input may be incomplete."""
    content = [
        {"text": f"The call of {block['toolUse'].get('name')} was cut off ({stop_reason})."}
        if "toolUse" in block
        else block
        for block in message["content"]
    ]
    return {"role": "assistant", "content": content}
