"""The second half of a cycle: the batch hook, the calls, and the message with their results."""

import copy
from dataclasses import dataclass
from typing import Any, Literal

from countersign.agent_core.asking import Asking
from countersign.agent_core.calls_in_doubt import doubt
from countersign.agent_core.cycle.batch import STOPPED_TEXT, Batch
from countersign.agent_core.cycle.calls import Calls
from countersign.agent_core.cycle.context import CycleContext, cancel_text
from countersign.agent_core.cycle.decider import Decider
from countersign.agent_core.cycle.refusals import note_batch_refused
from countersign.agent_core.cycle.signatures import as_it_would_run, denied
from countersign.agent_core.errors import CallbackError, ToolInputError
from countersign.agent_core.hooks.events import AfterToolsEvent, BeforeToolsEvent, MessageAddedEvent
from countersign.agent_core.interrupts import refused
from countersign.agent_core.messages import ContentBlock, Message, results_message, tool_uses
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.unknown_outcomes import UNKNOWN_OUTCOME_QUESTION, outcome_choice
from countersign.agent_core.wire import Pending, ShownCall


@dataclass
class ToolPhaseEnd:
    """How the tools of a cycle ended.

    done         every call has its result
    interrupt    people must answer first; `pending` says what is left
    cancelled    a stop was asked for; every call has its result
    """

    kind: Literal["done", "interrupt", "cancelled"]
    pending: Pending | None = None
    end_turn: list[ContentBlock] | None = None


class ToolPhase:
    """Runs the calls of one model message, as far as people allow.

    Args:
        context: The cycle.
        pending: The batch; changed in place.
    """

    def __init__(self, context: CycleContext, pending: Pending) -> None:
        self._context = context
        self._batch = Batch(context, pending)
        self._decider = Decider(context, pending, self._batch.ledger)
        self._calls = Calls(self._batch, self._decider)

    async def run(self) -> ToolPhaseEnd:
        """One pass: ask what must be asked, run what may run.

        Raises:
            CallbackError: If a hook or handler fails. Every call has its result by then, and the
                conversation is complete.
        """
        await self._calls.take_recovered()
        if self._context.effects.stop_requested and self._batch.error is None:
            self._batch.finish_rest(STOPPED_TEXT)
            await self._add_results()
            return ToolPhaseEnd("cancelled")
        self._doubt_after_reset()
        try:
            if self._batch.error is None:
                if await self._ask_for_batch():
                    self._batch.note_withdrawn()
                    return ToolPhaseEnd("interrupt", self._batch.pending)
                await self._run_calls()
        except CallbackError as error:
            self._batch.failed(error)
        self._batch.note_withdrawn()
        end_turn = await self._after_tools()
        if self._batch.error is not None:
            self._batch.finish_rest(f"Not run: the turn failed ({self._batch.error}).")
            await self._add_results()
            raise self._batch.error
        if self._context.agent.cancellation.now:
            self._batch.finish_rest(STOPPED_TEXT)  # nobody will be asked any more
        if self._batch.unfinished():
            # Tools that run side by side ask in any order; people see their questions in the order of the calls.
            self._batch.pending.questions.sort(key=lambda question: -1 if question.index is None else question.index)
            return ToolPhaseEnd("interrupt", self._batch.pending)
        await self._add_results()
        stopped = self._context.cancelled or self._context.agent.cancellation.soon
        return ToolPhaseEnd("cancelled" if stopped else "done", end_turn=end_turn)

    async def alone(self) -> None:
        """The same without a turn: no results in the conversation, and nothing that hooks could end.

        Raises:
            CallbackError: If a hook or handler fails; results that are there already stay in the batch.
        """
        try:
            if await self._ask_for_batch():
                return
            await self._run_calls()
        except CallbackError as error:
            self._batch.failed(error)
        await self._after_tools()
        if self._batch.error is not None:
            raise self._batch.error

    def _doubt_after_reset(self) -> None:
        """In a session that was reset, ask about each call whether it ran before; once, and first of all.

        About idempotent ones, too: after a reset nobody knows the idempotency keys that were used before it.
        """
        if not self._context.given.after_reset or self._batch.pending.doubted:
            return
        self._batch.pending.doubted = True
        for index in self._batch.unfinished():
            if isinstance(self._context.agent.tool_registry.get(str(self._batch.uses[index]["name"])), OutputTool):
                continue  # it has no effect
            known = index in self._batch.pending.unknown and index not in self._batch.pending.not_run
            asked = self._batch.ledger.latest("core", index, UNKNOWN_OUTCOME_QUESTION)
            used = asked is not None and asked.answer is not None and outcome_choice(asked.answer.response) == "retry"
            if known and not used:
                continue
            if asked is not None:
                asked.status = "settled"  # nobody had run the call then, or its repetition may have begun since
            doubt(self._batch.pending, index, "the session was reset, and may have run it before that")

    async def _add_results(self) -> None:
        message = results_message(self._batch.pending.results[index] for index in range(len(self._batch.uses)))
        self._context.runner.put_results(message, self._batch.pending.message)
        if self._batch.error is None:
            await self._context.runner.fire(MessageAddedEvent(self._context.agent, message))

    async def _ask_for_batch(self) -> bool:
        """Fire the batch hook. True if it asks; a cancellation gives every call its result."""
        asking = Asking(self._batch.ledger, "batch", None)
        event = BeforeToolsEvent(
            self._context.agent,
            message=self._message_as_it_would_run(),
            invocation_state=self._context.invocation_state,
        )
        if any(question.status == "expired" for question in self._batch.ledger.of(None)):
            return False
        before = self._context.agent.memory.take()
        await self._context.runner.fire(event, asking)
        if event.cancel is False and self._context.agent.cancellation.now:
            self._batch.finish_rest(STOPPED_TEXT)
            return False
        if event.cancel is not False:
            text = cancel_text(event.cancel, "Tool cancelled by hook")
            note_batch_refused(self._context, asking, list(asking.consumed.values()), text)
            self._batch.finish_rest(text)
            return False
        no = next((question for question in asking.consumed.values() if denied(question)), None)
        if no is not None:  # whoever asked did not take the no for one
            response = no.answer.response if no.answer else None
            text = f"Not run: a person refused it ({no.name}: {response!r})."
            note_batch_refused(self._context, asking, [no], text)
            self._batch.finish_rest(text)
            return False
        shown = [self._shown(index) for index in self._batch.unfinished()]
        self._decider.batch_gone = asking.unasked()
        no_stands = any(refused(question) for question in self._decider.batch_gone)
        if asking.asked and not no_stands and any(runnable for _, runnable in shown):
            # As for a single call: the batch hooks run again on resume and must not count twice.
            self._context.agent.memory.restore(before)
            for ask in asking.asked:
                self._batch.note_asked(
                    self._batch.ledger.open("batch", None, ask, [call for call, _ in shown], fresh=True)
                )
            return True
        self._batch.ledger.withdraw_unasked("batch", None)
        return False

    def _message_as_it_would_run(self) -> Message:
        """A copy of the model's message, each call with the input that would run; an approver's edit is one."""
        message = copy.deepcopy(self._batch.pending.message)
        for index, use in enumerate(tool_uses(message)):
            tool = self._context.agent.tool_registry.get(str(use["name"]))
            use["input"] = as_it_would_run(tool, self._input(index))
        return message

    def _input(self, index: int) -> Any:
        """A call's input: an approver's, if one has edited it, or the model's."""
        return copy.deepcopy(self._batch.pending.edits.get(index, self._batch.uses[index]["input"]))

    def _shown(self, index: int) -> tuple[ShownCall, bool]:
        """A call as hooks get it, and whether it could run like this."""
        use = self._batch.uses[index]
        call = ShownCall(index=index, tool_use_id=use["toolUseId"], tool=str(use["name"]), input=self._input(index))
        tool = self._context.agent.tool_registry.get(call.tool)
        if tool is None:
            return call, False
        try:
            call.input = tool.canonical_input(call.input)
        except ToolInputError:
            return call, False
        call.input_schema = tool.tool_spec["inputSchema"]["json"]
        return call, True

    async def _run_calls(self) -> None:
        """The calls without a result, in the order that the agent's executor wants."""
        if not self._context.agent.tool_executor.one_by_one:
            await self._calls.together(self._batch.unfinished())
            return
        for index in self._batch.unfinished():
            if self._context.cancelled:
                self._batch.finish_rest(STOPPED_TEXT)
                return
            await self._calls.together([index])
            if self._batch.error is not None or index in self._batch.unfinished():
                return  # it failed, or it asks: the calls behind it are not looked at yet

    async def _after_tools(self) -> list[ContentBlock] | None:
        """Fire AfterToolsEvent with what this pass produced.

        Returns:
            Content of the final assistant message if a hook ends the turn.
        """
        message: Message = results_message(self._batch.produced[index] for index in sorted(self._batch.produced))
        event = AfterToolsEvent(self._context.agent, message=message, invocation_state=self._context.invocation_state)
        try:
            await self._context.runner.fire(event)
        except CallbackError as error:
            self._batch.failed(error)
            return None
        if event.end_turn is False:
            return None
        if isinstance(event.end_turn, list) and event.end_turn:
            return event.end_turn
        given = event.end_turn if isinstance(event.end_turn, str) else True  # an empty list ends the turn too
        return [{"text": cancel_text(given, "Turn ended early by hook after tool execution")}]
