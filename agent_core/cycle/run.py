"""Runs one cycle from its input to its outcome."""

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from countersign.agent_core.calls_in_doubt import all_given_up
from countersign.agent_core.cycle.batch import STOPPED_TEXT
from countersign.agent_core.cycle.callbacks import CallbackRunner
from countersign.agent_core.cycle.completing import complete
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.cycle.invocation import after_invocation, before_invocation
from countersign.agent_core.cycle.managing import Managing
from countersign.agent_core.cycle.model_phase import call_model
from countersign.agent_core.cycle.tool_phase import ToolPhase
from countersign.agent_core.effects import Effects, in_cycle
from countersign.agent_core.errors import (
    CallbackError,
    ContextWindowOverflowException,
    MaxTokensReachedException,
    ToolInputError,
)
from countersign.agent_core.hooks.events import ModelStopResponse
from countersign.agent_core.messages import (
    Message,
    assistant_text,
    guidance_message,
    results_message,
    tool_uses,
    unanswered,
)
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.wire import CycleInput, CycleOutcome, ErrorInfo, Pending

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


@dataclass
class CycleEnd:
    """A cycle's outcome and what of it can't cross a wire: the very exception if it failed, the object it led to."""

    outcome: CycleOutcome
    cause: BaseException | None = None
    output: BaseModel | None = None


async def run_cycle(
    agent: "Agent",
    given: CycleInput,
    messages: Sequence[Message],
    effects: Effects,
    output: OutputTool | None = None,
) -> CycleEnd:
    """Run one cycle of the agent loop.

    Args:
        agent: Fresh from its factory; its conversation and state are set from the arguments.
        given: What the cycle starts from.
        messages: The conversation so far.
        effects: The way to models, tools, steps and the clock.
        output: What the turn shall lead to; what the agent wants by itself if None.

    Returns:
        Never raises for what models, tools, hooks or handlers do: that is an outcome too.
    """
    output = output or agent.output_tool
    cycle = _Cycle(agent, given, messages, effects, output)
    with in_cycle(effects, cycle._context.spend), agent.tool_registry.with_tool(output):
        return await cycle.run()


class _Cycle:
    def __init__(
        self,
        agent: "Agent",
        given: CycleInput,
        messages: Sequence[Message],
        effects: Effects,
        output: OutputTool | None,
    ) -> None:
        agent._load(messages, given.agent_state, given.handlers, fresh=given.fresh)
        state = copy.deepcopy(given.invocation_state)
        runner = CallbackRunner(agent, effects, state, given.progress.guides)
        self._context = CycleContext(
            agent, given, effects, runner, given.progress.model_copy(deep=True), state, given.model_calls, output
        )
        if given.opens == "resume":
            self._context.progress.forced = False  # with an answer the model may need its other tools again
        self._output: BaseModel | None = None
        self._managing = Managing(self._context)
        self._before = list(messages)
        self._pending = given.pending.model_copy(deep=True) if given.pending else None

    async def run(self) -> CycleEnd:
        cause: BaseException | None = None
        try:
            outcome = await self._loop()
        except Exception as error:
            cause = error.cause if isinstance(error, CallbackError) else error
            outcome = self._failed(error)
        if not outcome.goes_on:
            for ending in (
                self._managing.after_turn,
                lambda ended: after_invocation(self._context, ended, self._output),
            ):
                try:
                    await ending(outcome)
                except CallbackError as error:
                    if cause is None:
                        cause = error.cause
                        outcome = self._failed(error)
        handlers = self._context.given.handlers
        try:
            handlers = self._context.agent.memory.take()
        except Exception as error:
            if cause is None:
                cause = error
                outcome = self._failed(error)
        outcome.handlers = handlers
        complete(outcome, self._context, self._before)
        return CycleEnd(outcome, cause, self._output if outcome.structured_output is not None else None)

    async def _loop(self) -> CycleOutcome:
        given = self._context.given
        if given.opens != "continue":
            cancelled = await self._before_invocation()
            if cancelled is not None:
                return cancelled
        self._context.invocation_state.setdefault("request_state", {})  # hooks write into it without asking
        if self._pending is None:
            response = await self._ask_model()
            if isinstance(response, CycleOutcome):
                return response
            if response.stop_reason == "max_tokens":
                raise MaxTokensReachedException(
                    "the model stopped at its token limit in the middle of its message, which is kept in the "
                    "conversation; raise the limit, or prompt again to go on"
                )
            if response.stop_reason != "tool_use":
                return await self._without_tools(response)
            self._pending = Pending(origin_cycle=given.cycle, message=response.message)
        return await self._tools(self._pending)

    async def _ask_model(self) -> ModelStopResponse | CycleOutcome:
        """What the model says, with a smaller conversation if it must be; or the end of the turn without it."""
        while True:
            limit = self._context.limit_reached
            if limit is not None:
                return self._outcome(limit, self._context.last_message)
            if self._context.effects.stop_requested:
                return await self._say_and_end("cancelled", STOPPED_TEXT)
            await self._managing.before_model_call()
            try:
                if (response := await call_model(self._context)) is not None:
                    return response
            except ContextWindowOverflowException as error:
                await self._managing.after_overflow(error)

    async def _without_tools(self, response: ModelStopResponse) -> CycleOutcome:
        """The end of the turn, unless the model owes structured output and has not been asked for it."""
        context, output = self._context, self._context.output
        outcome = self._outcome(response.stop_reason, response.message)
        if output is None or response.stop_reason != "end_turn":
            return outcome
        if context.progress.forced:
            return self._leading_to(outcome, output.in_text(response.message))
        context.progress.forced = True
        await context.add_message(guidance_message(output.prompt))
        return self._outcome("tool_use", response.message)

    async def _tools(self, pending: Pending) -> CycleOutcome:
        end = await ToolPhase(self._context, pending).run()
        if end.kind == "interrupt":
            outcome = self._outcome("interrupt", pending.message)
            outcome.pending = end.pending
            return outcome
        if end.kind == "cancelled":
            outcome = await self._say_and_end("cancelled", self._context.agent.cancellation.words(STOPPED_TEXT))
        elif end.end_turn is not None:
            message: Message = {"role": "assistant", "content": end.end_turn}
            await self._context.add_message(message)
            outcome = self._outcome("end_turn", message)
        else:
            outcome = self._outcome("tool_use", pending.message)
        if self._context.output is not None and pending.outputs:
            # If its class has changed while a person was asked, it may not fit any more: the turn goes on.
            with contextlib.suppress(ToolInputError):
                first = pending.outputs[min(pending.outputs)]
                return self._leading_to(outcome, self._context.output.value(first))
        return outcome

    def _leading_to(self, outcome: CycleOutcome, output: BaseModel) -> CycleOutcome:
        self._output, outcome.structured_output = output, output.model_dump(mode="json")
        return outcome

    async def _before_invocation(self) -> CycleOutcome | None:
        added, denied = await before_invocation(self._context)
        if denied is not None:
            # The prompt stays in the conversation, so that it and the refusal read as one exchange.
            self._give_up_pending(denied)
        for message in added:
            await self._context.add_message(message)
        return None if denied is None else await self._say_and_end("end_turn", denied)

    async def _say_and_end(self, stop_reason: str, text: str) -> CycleOutcome:
        message = assistant_text(text)
        await self._context.add_message(message)
        return self._outcome(stop_reason, message)

    def _give_up_pending(self, text: str) -> None:
        """Give every call without a result an error result, so that the conversation stays valid."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        for question in pending.questions:
            if question.status == "open":
                question.status = "withdrawn"
                self._context.note("question_withdrawn", question=question.id, name=question.name)
        results = all_given_up(pending, text)
        self._context.runner.put_results(results_message(results), pending.message)

    def _failed(self, error: Exception) -> CycleOutcome:
        """The turn failed; the conversation is made complete first."""
        origin = error.origin if isinstance(error, CallbackError) else ""
        cause = error.cause if isinstance(error, CallbackError) else error
        messages = self._context.agent.messages
        left = self._pending is not None and unanswered(messages, self._pending.message) is not None
        if left or (messages and tool_uses(messages[-1])):
            # Without a batch, the failure came right after the message was added: by a hook on that event.
            self._pending = self._pending or Pending(origin_cycle=self._context.given.cycle, message=messages[-1])
            self._give_up_pending(f"Not run: the turn failed ({cause}).")
        outcome = self._outcome("failed", self._context.last_message)
        outcome.error = ErrorInfo(type=type(cause).__name__, message=str(cause), origin=origin)
        self._context.note("turn_failed", error=outcome.error.model_dump())
        return outcome

    def _outcome(self, stop_reason: str, message: Message) -> CycleOutcome:
        return CycleOutcome(stop_reason=stop_reason, last_cycle=self._context.given.cycle, message=message)
