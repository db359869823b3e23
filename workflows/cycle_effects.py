"""The cycle's effects as Temporal activities: models, tools and steps, with their timeouts and retries."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception

from countersign.agent_core import errors
from countersign.agent_core.conversation import Conversation, packed
from countersign.agent_core.json_values import json_size
from countersign.agent_core.large_results import too_large_text
from countersign.agent_core.markdown import plain
from countersign.agent_core.messages import Message, error_result
from countersign.agent_core.models import FIRST_RETRY_S, LONGEST_RETRY_S, MODEL_ATTEMPTS
from countersign.agent_core.steps import StepInfo
from countersign.agent_core.tools import Tool
from countersign.agent_core.wire import (
    MAX_ARGUMENTS_BYTES,
    MAX_TASK_BYTES,
    MAX_VALUE_BYTES,
    MODEL_ACTIVITY,
    STEP_ACTIVITY,
    CycleInput,
    ModelCall,
    ModelResponse,
    StepCall,
    ToolCall,
    ToolOutcome,
)
from countersign.workflows import host
from countersign.workflows.guard import policed
from countersign.workflows.pace import Pace

MODEL_TIMEOUT = timedelta(minutes=10)
MODEL_HEARTBEAT = timedelta(seconds=10)
MODEL_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=FIRST_RETRY_S),
    maximum_interval=timedelta(seconds=LONGEST_RETRY_S),
    maximum_attempts=MODEL_ATTEMPTS,
)

STOP_PATCH = "a-stop-does-not-wait-for-the-model"
"""Since 2026-12-01. Before it, a cycle that was stopped waited for the model's answer, with all its retries."""

TOOL_TIMEOUT = timedelta(hours=1)
TOOL_HEARTBEAT = timedelta(seconds=10)
TOOL_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    maximum_interval=timedelta(seconds=10),
    maximum_attempts=0,  # the activity itself tells a safe repetition from a call that may have run
    non_retryable_error_types=["NotFoundError"],
)

TOOL_QUEUE_TIMEOUT = timedelta(minutes=10)
"""How long a call waits for a worker of its tool's own queue before a person is asked."""

STEP_HEARTBEAT = timedelta(seconds=10)
STEP_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=5)

RESULTS_BUDGET_BYTES = 1_000_000
"""What the results of one batch may weigh together, so that the outcome can be sent."""


class DurableEffects:
    """`Effects` of one cycle in a workflow.

    Args:
        given: The cycle's input.
        conversation: The conversation so far, and what of it is in storage.
        pace: Counts how long the effects work.
        stop_requested: Whether a stop has come already.
    """

    def __init__(self, given: CycleInput, conversation: Conversation, pace: Pace, stop_requested: bool) -> None:
        self._given = given
        self._conversation = conversation
        self._pace = pace
        self._result_bytes = 0
        self._asked: workflow.ActivityHandle[ModelResponse] | None = None
        self.stop_requested = stop_requested

    def stop(self) -> None:
        """A stop has come: nothing more is begun, and the model is not waited for."""
        self.stop_requested = True
        if self._asked is not None and workflow.patched(STOP_PATCH):
            self._asked.cancel()

    def now(self) -> datetime:
        """See `Effects.now`."""
        return workflow.now()

    def guard(self, callback: str) -> AbstractContextManager[object]:
        """See `Effects.guard`."""
        return policed(callback)

    async def call_model(self, call: ModelCall, messages: Sequence[Message]) -> ModelResponse | None:
        """See `Effects.call_model`."""
        sent = list(messages)
        arguments = packed(self._conversation.pieces(sent))
        sizes = [json_size(argument) for argument in arguments]
        if sum(sizes) > MAX_ARGUMENTS_BYTES or max(sizes, default=0) > MAX_VALUE_BYTES:
            raise errors.PayloadTooLargeError("the conversation", sum(sizes), MAX_ARGUMENTS_BYTES)
        self._asked = workflow.start_activity(
            MODEL_ACTIVITY,
            args=[call, *arguments],
            result_type=ModelResponse,
            start_to_close_timeout=MODEL_TIMEOUT,
            heartbeat_timeout=MODEL_HEARTBEAT,
            retry_policy=MODEL_RETRY,
            summary=f"cycle {call.cycle}",
        )
        try:
            response = await self._asked
        except (ActivityError, asyncio.CancelledError) as error:
            self._pace.add(None)  # a hook may have the model asked again
            if self.stop_requested and is_cancelled_exception(error) and workflow.cancellation_reason() is None:
                return None
            if isinstance(error, asyncio.CancelledError):
                raise
            raise _named(error, errors.ModelError, "the model's call") from error
        finally:
            self._asked = None
        self._pace.add(response.duration_s)
        self._conversation.store(sent, response.stored)
        return response

    async def call_tools(self, calls: Sequence[ToolCall], done: Callable[[int, ToolOutcome], Awaitable[None]]) -> None:
        """See `Effects.call_tools`. Calls go out in waves, so that no workflow task grows too large."""
        one_at_a_time = asyncio.Lock()

        async def one(position: int, call: ToolCall, size: int) -> None:
            outcome = await self._call_tool(call, size)
            self._pace.add(outcome.duration_s)
            async with one_at_a_time:
                await done(position, self._affordable(call, outcome))

        wave: list[Awaitable[None]] = []
        weight = 0
        for position, call in enumerate(calls):
            size = json_size(call.model_dump(mode="json"))
            if wave and weight + size > MAX_TASK_BYTES // 2:
                await asyncio.gather(*wave)
                wave, weight = [], 0
            if self.stop_requested:  # while an earlier wave ran
                await done(position, ToolOutcome(kind="never_started", detail="the turn was stopped"))
                continue
            wave.append(one(position, call, size))
            weight += size
        await asyncio.gather(*wave)

    async def _call_tool(self, call: ToolCall, size: int) -> ToolOutcome:
        if size > MAX_VALUE_BYTES:
            error = errors.PayloadTooLargeError(
                f"the input of {call.tool} with the agent's state", size, MAX_VALUE_BYTES
            )
            return ToolOutcome(kind="never_started", detail=f"{type(error).__name__}: {error}")
        run, tool = workflow.info().original_execution_run_id, self._tool(call)
        queue = tool.queue if tool else None
        wait = ((tool.queue_timeout if tool else None) or TOOL_QUEUE_TIMEOUT) if queue else None
        try:
            outcome: ToolOutcome = await workflow.execute_activity(
                call.tool,
                call.model_copy(update={"run": run}),
                result_type=ToolOutcome,
                task_queue=queue,
                schedule_to_start_timeout=wait,
                start_to_close_timeout=(tool.timeout if tool else None) or TOOL_TIMEOUT,
                heartbeat_timeout=TOOL_HEARTBEAT,
                retry_policy=TOOL_RETRY,
                summary=f"cycle {call.cycle} · call {call.index + 1}" + (f" · queue {queue}" if queue else ""),
            )
            return outcome
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error  # not an error of the turn: the cycle itself is being ended
            return _failed_call(call, error, queue, wait)

    def _tool(self, call: ToolCall) -> Tool | None:
        deployment = host.deployments(workflow.info().task_queue).get(call.agent)
        return deployment.template.tool_registry.get(call.tool) if deployment else None

    def _affordable(self, call: ToolCall, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome, without its result if the batch's results together weigh too much."""
        if outcome.result is None:
            return outcome
        size = json_size(outcome.result)
        if self._result_bytes + size <= RESULTS_BUDGET_BYTES:
            self._result_bytes += size
            return outcome
        text = too_large_text(
            size, f", and the results of one message may weigh {RESULTS_BUDGET_BYTES:,} bytes together"
        )
        return outcome.model_copy(update={"result": error_result(call.tool_use_id, text)})

    async def run_step(self, step: StepInfo, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """See `Effects.run_step`."""
        step.check_arguments(args, kwargs)
        call = StepCall(agent=self._given.agent, step=step.name, args=list(args), keywords=kwargs)
        began = workflow.now()
        try:
            return await workflow.execute_activity(
                STEP_ACTIVITY,
                call,
                start_to_close_timeout=step.timeout,
                schedule_to_close_timeout=None if step.retried else step.timeout,
                heartbeat_timeout=STEP_HEARTBEAT,
                retry_policy=STEP_RETRY,
                summary=plain(f"cycle {self._given.cycle} · {step.name}"),
            )
        except ActivityError as error:
            raise _named(error, errors.StepError, f"step {step.name}") from error
        finally:
            self._pace.add_step((workflow.now() - began).total_seconds())


def _failed_call(call: ToolCall, error: ActivityError, queue: str | None, wait: timedelta | None) -> ToolOutcome:
    """What a failed tool activity says of the call: never an error of the tool, which travels as a result."""
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type == TimeoutType.SCHEDULE_TO_START:
        # Once it has timed out, the server gives it to no worker any more. An attempt before it may have begun.
        waited = f"no worker of task queue {queue!r} took the call within {wait.total_seconds() if wait else 0:g} s"
        begun = bool(cause.last_heartbeat_details)  # the mark, and perhaps more of the tool's own
        return ToolOutcome(kind="unknown", detail=waited, not_run=not begun)
    if isinstance(cause, ApplicationError) and cause.type == "NotFoundError":
        # Surely not started on a first attempt, but the attempt can't be seen from here.
        return ToolOutcome(kind="unknown", detail=f"no worker on this queue has the tool {call.tool!r}")
    if isinstance(cause, TimeoutError):
        return ToolOutcome(kind="unknown", detail=f"the call timed out ({cause.message})")
    return ToolOutcome(kind="unknown", detail=str(cause or error))


def _named(error: ActivityError, unended: type[errors.CountersignError], what: str) -> BaseException:
    """An activity's failure as the error that it stands for; one of `unended` if `what` was cut off."""
    if is_cancelled_exception(error):
        return asyncio.CancelledError()  # not an error of the turn: the cycle itself is being ended
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return unended(f"{what} did not end: {cause or error}")
    return errors.error_named(cause.type or "ActivityFailed", cause.message)
