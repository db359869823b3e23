"""Effects that happen right here: the model, the tools and the steps of an agent in this process.

Looks at the clock, as nothing else in agent_core does but `inprocess`, and runs what blocks in threads.
"""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from countersign.agent_core.calls_in_doubt import attempted, bare
from countersign.agent_core.errors import AgentDefinitionError, ModelThrottledException, StepError, error_named
from countersign.agent_core.json_values import copied
from countersign.agent_core.messages import Message
from countersign.agent_core.models import FIRST_RETRY_S, LONGEST_RETRY_S, MODEL_ATTEMPTS, RETRYABLE, Model, answer
from countersign.agent_core.steps import StepInfo
from countersign.agent_core.structured_output import output_model
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.execution import execute
from countersign.agent_core.wire import ModelCall, ModelResponse, RecoveredCall, RecoveredCycle, ToolCall, ToolOutcome

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


CUT_OFF = "it was cancelled while it ran"

BeforeTools = Callable[[RecoveredCycle, Collection[int], datetime], Awaitable[None]]
"""Gets what the cycle has done (the calls that are about to run are unknown), those of them that may run twice, now."""


class InProcessEffects:
    """Effects that happen right here."""

    stop_requested = False

    def __init__(self, agent: "Agent", model: Model | None) -> None:
        self._agent = agent
        self._model = model
        self.begin(0)

    def begin(self, cycle: int, before_tools: BeforeTools | None = None) -> None:
        """Note from here on what this cycle does, in case it is cancelled.

        Args:
            cycle: Its number.
            before_tools: Awaited before tools run; if it raises, they don't.
        """
        self.done = RecoveredCycle(cycle=cycle)
        self._before_tools = before_tools

    def now(self) -> datetime:
        """See `Effects.now`."""
        return datetime.now(UTC)

    async def call_model(self, call: ModelCall, messages: Sequence[Message]) -> ModelResponse:
        """See `Effects.call_model`."""
        prompt = None if call.prompt is None else copied(list(messages[len(messages) - call.prompt :]))
        self.done = RecoveredCycle(cycle=call.cycle, prompt=prompt)
        response = await self._answer(call, messages)
        self.done.response = response.model_copy(deep=True)
        return response

    async def _answer(self, call: ModelCall, messages: Sequence[Message]) -> ModelResponse:
        """The model's answer; errors that are worth a retry get the tries that they would get durably."""
        if self._model is None:
            raise AgentDefinitionError(f"agent {self._agent.name!r} has no model; pass Agent(model=...)")
        tools = self._agent.tool_registry
        specs = [tool.tool_spec for name in call.tools if (tool := tools.get(name)) is not None]
        pause_s = FIRST_RETRY_S
        conversation = list(messages)
        for attempts_left in range(MODEL_ATTEMPTS - 1, -1, -1):
            try:
                # As on a worker, the model gets copies, whatever it does with them.
                given = copied(conversation)
                return await answer(self._model, call, given, specs, output_model(self._agent, call))
            except RETRYABLE as error:
                if not attempts_left:
                    raise
                asked_s = error.retry_after_s if isinstance(error, ModelThrottledException) else None
            await anyio.sleep(pause_s if asked_s is None else asked_s)
            pause_s = min(2 * pause_s, LONGEST_RETRY_S)
        raise AssertionError("the last attempt returns or raises")

    async def call_tools(self, calls: Sequence[ToolCall], done: Callable[[int, ToolOutcome], Awaitable[None]]) -> None:
        """See `Effects.call_tools`."""
        one_at_a_time = anyio.Lock()
        tools = [self._tool(call) for call in calls]
        begun = await self._begun(calls, tools)

        async def one(position: int, call: ToolCall) -> None:
            tool, known = tools[position], begun[position]
            outcome = await execute(
                tool,
                call,
                in_thread=anyio.to_thread.run_sync,
                heartbeat=lambda: None,
                clock=asyncio.get_running_loop().time,
            )
            if outcome.kind == "result":
                known.status, known.outcome = "finished", outcome
            elif outcome.kind != "unknown":
                known.status = "never_started"
            async with one_at_a_time:
                await done(position, outcome)

        async with anyio.create_task_group() as group:
            for position, call in enumerate(calls):
                group.start_soon(one, position, call)

    def _tool(self, call: ToolCall) -> Tool:
        tool = self._agent.tool_registry.get(call.tool)
        assert tool is not None  # the cycle asks only for tools of this agent
        return tool

    async def _begun(self, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> list[RecoveredCall]:
        """Note that calls run from now on, one note for each."""
        before = self.done.model_copy()
        notes = [RecoveredCall(index=call.index, status="unknown", call=bare(call), detail=CUT_OFF) for call in calls]
        attempted(self.done, notes)
        self.done.message = calls[0].message or self.done.message
        if self._before_tools is not None:
            again = {call.index for call, tool in zip(calls, tools, strict=True) if tool.idempotent}
            try:
                await self._before_tools(self.done, again, self.now())
            except BaseException:
                self.done = before
                raise
        return notes

    async def run_step(self, step: StepInfo, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """See `Effects.run_step`. What a worker would refuse is refused here, and errors are those of a worker."""
        step.check_arguments(args, kwargs)
        with anyio.move_on_after(step.timeout.total_seconds()):
            try:
                result = await _called(step.function, copied(list(args)), copied(dict(kwargs)))
            except Exception as error:
                named = error_named(type(error).__name__, str(error))
                if type(error) is type(named):
                    raise
                raise named from error
            step.check_result(result)
            return result
        raise StepError(f"step {step.name} did not end within {step.timeout.total_seconds():g} s")

    def guard(self, callback: str) -> contextlib.AbstractContextManager[object]:
        """Nothing is watched in-process."""
        return contextlib.nullcontext()


async def _called(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await anyio.to_thread.run_sync(lambda: function(*args, **kwargs), abandon_on_cancel=True)
    return await result if inspect.isawaitable(result) else result
