"""Runs one tool call and turns whatever happens into a `ToolOutcome`. Both drivers use it."""

import asyncio
import functools
import inspect
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from pydantic import BaseModel

from countersign.agent_core.interrupts import InterruptException, call_digest
from countersign.agent_core.json_values import check_json, json_size
from countersign.agent_core.large_results import too_large_text
from countersign.agent_core.messages import ToolResult, error_result
from countersign.agent_core.state import AgentState, ToolState
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.context import ToolAgent, ToolContext
from countersign.agent_core.wire import ErrorInfo, ToolCall, ToolOutcome

logger = logging.getLogger(__name__)

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a blocking function in a thread."""

RESULT_LIMIT_BYTES = 1_000_000
"""The most that a result may weigh, and the most that a call may write to `agent.state`."""


async def execute(
    tool: Tool,
    call: ToolCall,
    *,
    in_thread: InThread,
    heartbeat: Callable[[], None],
    clock: Callable[[], float],
) -> ToolOutcome:
    """Run a tool for a call, if the call is what was signed.

    Args:
        tool: The tool.
        call: What to run.
        in_thread: Runs sync tools.
        heartbeat: Passed on to the tool's body.
        clock: Seconds that only go up, to say how long the call took.

    Returns:
        The outcome; a tool that raises is a result with error status. Cancellation is not caught.
    """
    if call_digest(call.tool, call.input) != call.digest:
        return ToolOutcome(
            kind="never_started", detail=f"the input of {call.tool!r} is not what was signed (its digest differs)"
        )
    state = ToolState(call.agent_state)
    context = ToolContext(
        tool_use={"toolUseId": call.tool_use_id, "name": call.tool, "input": call.input},
        agent=ToolAgent(call.agent, state),
        invocation_state=call.invocation_state,
        idempotency_key=call.idempotency_key,
        heartbeat=heartbeat,
        _answers=call.answers,
    )
    begun = clock()
    outcome = await _invoke(tool, call, context, in_thread)
    outcome.duration_s = round(clock() - begun, 6)
    return _within_limits(call, outcome, state)


async def _invoke(tool: Tool, call: ToolCall, context: ToolContext, in_thread: InThread) -> ToolOutcome:
    value, error = None, None
    try:
        value, error = await _run(tool, call, context, in_thread)
    except (asyncio.CancelledError, GeneratorExit) as raised:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        error = raised  # the body's own: nobody has cancelled this call
    except BaseException as raised:
        error = raised
    # The record counts, not the exception: a body that swallows the interrupt has paused all the same,
    # and one that raises it inside a task group raises an exception group.
    if context.asked is not None:
        return ToolOutcome(kind="interrupt", ask=context.asked)
    if error is not None:
        logger.warning("tool=<%s>, session=<%s> | raised", call.tool, call.session_id, exc_info=error)
        return _raised(call, error)
    try:
        return ToolOutcome(kind="result", result=as_result(call.tool_use_id, value))
    except Exception as unshown:  # it ran: without a result it would count as lost
        text = f"The tool ran, but its result can't be shown ({type(unshown).__name__})."
        kind = type(unshown).__name__
        return ToolOutcome(
            kind="result",
            result=error_result(call.tool_use_id, text),
            error=ErrorInfo(type=kind, message=text, origin=call.tool),
        )


async def _run(
    tool: Tool, call: ToolCall, context: ToolContext, in_thread: InThread
) -> tuple[Any, BaseException | None]:
    """Run the body to its end, whatever it returns first: a coroutine or a generator has run nothing by then.

    Returns:
        What it came to, or what a thread's part of it raised. Of a generator the last value counts, as in Strands.
    """
    body = functools.partial(tool.invoke, call.input, context)
    value, error = (body(), None) if tool.is_async else await in_thread(lambda: _contained(body))
    while error is None:
        if isinstance(value, AsyncIterator):
            value = await _last(value)
        elif isinstance(value, Generator):
            value, error = await in_thread(functools.partial(_contained, functools.partial(_last_of, value)))
        elif inspect.isawaitable(value) and (awaited := await value) is not value:
            value = awaited
        else:
            break
    return value, error


def _contained(body: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What a sync body returned or raised, as values: threads and event loops mishandle interrupts and `sys.exit`."""
    try:
        return body(), None
    except BaseException as error:
        return None, error


async def _last(values: AsyncIterator[Any]) -> Any:
    """The last value of a streaming tool; those before it are its progress."""
    last = None
    async for last in values:  # noqa: B007 (the last one is the result)
        pass
    return last


def _last_of(values: Generator[Any, Any, Any]) -> Any:
    """The same of a plain generator; what it returns comes last."""
    last = None
    while True:
        try:
            last = next(values)
        except StopIteration as end:
            return last if end.value is None else end.value


def _raised(call: ToolCall, error: BaseException) -> ToolOutcome:
    kind = type(error).__name__
    try:
        text = _sendable(str(error))
    except Exception:
        text = "(its text can't be read)"
    if isinstance(error, InterruptException):
        kind, text = "RuntimeError", f"interrupt {error.name!r} was raised without asking: use tool_context.interrupt()"
    shown = f"Error: {text}" if isinstance(error, ValueError) else f"Error: {kind} - {text}"  # as in Strands
    return ToolOutcome(
        kind="result",
        result=error_result(call.tool_use_id, shown),
        error=ErrorInfo(type=kind, message=text, origin=call.tool),
    )


def as_result(tool_use_id: str, value: Any) -> ToolResult:
    """A tool's return value as a tool result.

    A dict with "status" and "content" is one already. Text stays text; anything else becomes JSON
    text where that is possible, else the text of `str`.
    """
    if (
        isinstance(value, dict)
        and value.get("status") in ("success", "error")
        and isinstance(value.get("content"), list)
    ):
        try:
            check_json(value["content"], "content")
        except TypeError:
            pass
        else:
            return {"toolUseId": tool_use_id, "status": value["status"], "content": value["content"]}
    return {"toolUseId": tool_use_id, "status": "success", "content": [{"text": _sendable(_text(value))}]}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _sendable(text: str) -> str:
    """Text without lone surrogates, which file names that are not UTF-8 have and no channel takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _within_limits(call: ToolCall, outcome: ToolOutcome, state: AgentState) -> ToolOutcome:
    """The outcome with the tool's writes to the state; what is too large says so instead."""
    written, deleted = state.changes()
    size = json_size(outcome.model_dump(mode="json")) + json_size(written)
    if size <= RESULT_LIMIT_BYTES:
        outcome.state_set, outcome.state_deleted = written, deleted
        return outcome
    text = too_large_text(size, f", and at most {RESULT_LIMIT_BYTES:,} bytes can be kept")
    if outcome.kind == "interrupt":
        text = f"The tool asked a question that is too large to show: {size:,} bytes (PayloadTooLargeError)."
    error = ErrorInfo(type="PayloadTooLargeError", message=text, origin=call.tool)
    return ToolOutcome(kind="result", result=error_result(call.tool_use_id, text), error=error)
