"""The second half of a cycle: the batch hook, each call's decision, the calls, and their results.

Decisions are made one call after the other, in the order of the model's message; then the calls
that may run do so side by side; then hooks see the results one at a time.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from countersign.agent_core.approvals import UNKNOWN_OUTCOME_QUESTION, Ask, Asking, Ledger
from countersign.agent_core.cycle.context import CycleContext, cancel_text
from countersign.agent_core.cycle.decision import Asked, Decider, Refused, Run
from countersign.agent_core.cycle.signatures import approved_by, as_it_would_run, words_for_the_model
from countersign.agent_core.doubts import doubt, doubt_words
from countersign.agent_core.errors import CallbackError, RetryLimitError, ToolInputError
from countersign.agent_core.hooks.events import AfterToolCallEvent, AfterToolsEvent, BeforeToolsEvent, MessageAddedEvent
from countersign.agent_core.json_values import check_json
from countersign.agent_core.messages import (
    ContentBlock,
    Message,
    ToolResult,
    error_result,
    not_run,
    results_message,
    tool_uses,
)
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.wire import ErrorInfo, Pending, Question, ShownCall, ToolOutcome

STOPPED_TEXT = "Tool execution cancelled"

EXECUTION_LIMIT = 50
"""The most runs of one call that hooks may ask for."""


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


@dataclass
class _Pass:
    """One pass over a batch: what it produced so far and what went wrong."""

    produced: dict[int, ToolResult] = field(default_factory=dict)
    error: CallbackError | None = None


class ToolPhase:
    """Runs the calls of one model message, as far as people allow.

    Args:
        context: The cycle.
        pending: The batch; changed in place.
    """

    def __init__(self, context: CycleContext, pending: Pending) -> None:
        self._context = context
        self._pending = pending
        self._uses = tool_uses(pending.message)
        self._noted = {question.id for question in pending.questions}
        given = context.given
        self._ledger = Ledger(
            given.session_id + given.session_run,
            pending,
            context.effects.now,
            timedelta(seconds=given.default_deadline_s),
            timedelta(seconds=given.approval_ttl_s),
        )
        self._decider = Decider(context, pending, self._ledger)
        self._pass = _Pass()

    async def run(self) -> ToolPhaseEnd:
        """One pass: ask what must be asked, run what may run.

        Raises:
            CallbackError: If a hook or handler fails. Every call has its result by then, and the
                conversation is complete.
        """
        if self._context.effects.stop_requested:
            self._finish_rest(STOPPED_TEXT)
            await self._add_results()
            return ToolPhaseEnd("cancelled")
        self._doubt_after_reset()
        try:
            if await self._ask_for_batch():
                return ToolPhaseEnd("interrupt", self._pending)
            await self._calls()
        except CallbackError as error:
            self._pass.error = self._pass.error or error
        end_turn = await self._after_tools()
        if self._pass.error is not None:
            self._finish_rest(f"Not run: the turn failed ({self._pass.error}).")
            await self._add_results()
            raise self._pass.error
        if self._context.agent.cancellation.now:
            self._finish_rest(STOPPED_TEXT)  # nobody will be asked any more
        if self._unfinished():
            # Tools that run side by side ask in any order; people see their questions in the order of the calls.
            self._pending.questions.sort(key=lambda question: -1 if question.index is None else question.index)
            return ToolPhaseEnd("interrupt", self._pending)
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
            await self._calls()
        except CallbackError as error:
            self._pass.error = self._pass.error or error
        await self._after_tools()
        if self._pass.error is not None:
            raise self._pass.error

    def _doubt_after_reset(self) -> None:
        """In a session that was reset, ask about each call whether it ran before; once, and first of all."""
        if not self._context.given.after_reset or self._pending.doubted:
            return
        self._pending.doubted = True
        for index in self._unfinished():
            tool = self._context.agent.tool_registry.get(str(self._uses[index]["name"]))
            known = index in self._pending.unknown and index not in self._pending.not_run
            if known or (tool is not None and tool.idempotent):
                continue
            asked = self._ledger.latest("core", index, UNKNOWN_OUTCOME_QUESTION)
            if asked is not None:
                asked.status = "settled"  # it said that nobody had run the call: a retry was no second run then
            doubt(self._pending, index, "the session was reset, and may have run it before that")

    def _unfinished(self) -> list[int]:
        return [index for index in range(len(self._uses)) if index not in self._pending.results]

    def _finish(self, index: int, result: ToolResult) -> None:
        """Give a call its result, whatever id a hook put into it, and close its questions."""
        result = {**result, "toolUseId": self._uses[index]["toolUseId"]}
        self._pending.results[index] = result
        self._pass.produced[index] = result
        for question in self._ledger.settle(index):
            self._context.note("question_withdrawn", question=question.id, name=question.name)
        if not self._unfinished():
            self._ledger.settle(None)

    def _finish_rest(self, text: str) -> None:
        for index in self._unfinished():
            known = doubt_words(self._pending, index) or text
            self._finish(index, not_run(self._uses[index]["toolUseId"], known, self._pending.executions.get(index, 0)))

    async def _add_results(self) -> None:
        message = results_message(self._pending.results[index] for index in range(len(self._uses)))
        self._context.runner.put_results(message, self._pending.message)
        if self._pass.error is None:
            await self._context.runner.fire(MessageAddedEvent(self._context.agent, message))

    async def _ask_for_batch(self) -> bool:
        """Fire the batch hook. True if it asks; a cancellation gives every call its result."""
        asking = Asking(self._ledger, "batch", None)
        event = BeforeToolsEvent(
            self._context.agent,
            message=self._message_as_it_would_run(),
            invocation_state=self._context.invocation_state,
        )
        if any(question.status == "expired" for question in self._ledger.of(None)):
            return False
        before = self._context.agent.handlers_snapshot()
        await self._context.runner.fire(event, asking)
        if event.cancel is False and self._context.agent.cancellation.now:
            self._finish_rest(STOPPED_TEXT)
            return False
        if event.cancel is not False:
            self._context.note("batch_cancelled", questions=[q.id for q in asking.consumed.values()])
            self._finish_rest(cancel_text(event.cancel, "Tool cancelled by hook"))
            return False
        shown = [self._shown(index) for index in self._unfinished()]
        if asking.asked and any(runnable for _, runnable in shown):
            # As for a single call: the batch hooks run again on resume and must not count twice.
            self._context.agent.restore_handlers(before)
            for ask in asking.asked:
                self._note_asked(self._ledger.open("batch", None, ask, [call for call, _ in shown], fresh=True))
            return True
        self._ledger.withdraw_unasked("batch", None, set())
        self._decider.batch_gone = asking.unasked()
        return False

    def _message_as_it_would_run(self) -> Message:
        """A copy of the model's message, each call with the input that would run."""
        message = copy.deepcopy(self._pending.message)
        for use in tool_uses(message):
            use["input"] = as_it_would_run(self._context.agent.tool_registry.get(str(use["name"])), use["input"])
        return message

    def _shown(self, index: int) -> tuple[ShownCall, bool]:
        """A call as the model made it, and whether it could run like this."""
        use = self._uses[index]
        call = ShownCall(index=index, tool_use_id=use["toolUseId"], tool=str(use["name"]), input=use["input"])
        tool = self._context.agent.tool_registry.get(call.tool)
        if tool is None:
            return call, False
        try:
            call.input = tool.canonical_input(use["input"])
        except ToolInputError:
            return call, False
        call.input_schema = tool.tool_spec["inputSchema"]["json"]
        return call, True

    async def _calls(self) -> None:
        """The calls without a result, in the order that the agent's executor wants."""
        if not self._context.agent.tool_executor.one_by_one:
            await self._together(self._unfinished())
            return
        for index in self._unfinished():
            if self._context.cancelled:
                self._finish_rest(STOPPED_TEXT)
                return
            await self._together([index])
            if self._pass.error is not None or index in self._unfinished():
                return  # it failed, or it asks: the calls behind it are not looked at yet

    async def _together(self, indexes: Sequence[int]) -> None:
        """Decide and run until no hook asks for another try."""
        again = [index for index in indexes if not self._waits_in_body(index)]
        while again and self._pass.error is None:
            runs: list[Run] = []
            for index in again:
                await self._decide(index, runs)
            if self._context.effects.stop_requested:  # it came while a hook waited: what has not begun does not begin
                self._finish_rest(STOPPED_TEXT)
                return
            again = await self._execute(runs)

    def _waits_in_body(self, index: int) -> bool:
        """True if the call's body has asked and nobody has answered: it need not run only to ask again."""
        if index in self._pending.unknown:
            return False
        return any(question.scope == "tool" and question.status == "open" for question in self._ledger.of(index))

    async def _decide(self, index: int, runs: list[Run]) -> None:
        before = self._context.agent.handlers_snapshot()
        decision = await self._decider.decide(index, self._uses[index])
        if isinstance(decision, Run):
            runs.append(decision)
        elif isinstance(decision, Asked):
            # The handlers will be asked again on resume; they must not count this call twice.
            self._context.agent.restore_handlers(before)
            for question in decision.questions:
                self._note_asked(question)
        else:
            self._finish(index, await self._after_refusal(index, decision))

    def _note_asked(self, question: Question) -> None:
        if question.id in self._noted:  # asked before, and still open: one line in the audit trail is enough
            return
        self._noted.add(question.id)
        if question.id in self._ledger.void:
            tools = ", ".join(dict.fromkeys(call.tool for call in question.calls))
            self._context.note("approval_void", tool=tools, questions=[question.name], why=question.fault)
        self._context.note("question_asked", question=question.id, name=question.name)

    async def _after_refusal(self, index: int, refused: Refused) -> ToolResult:
        result, runs = refused.result, self._pending.executions.get(index, 0)
        if result["status"] == "error" and runs:
            result = {**result, "content": [*result["content"], *not_run("", "", runs)["content"][1:]]}
        event = AfterToolCallEvent(
            self._context.agent,
            selected_tool=refused.tool,
            tool_use=refused.tool_use,
            invocation_state=self._context.invocation_state,
            result=result,
            exception=refused.error,
            cancel_message=refused.cancel_message,
        )
        await self._fire_after(event)
        return event.result

    async def _execute(self, runs: Sequence[Run]) -> list[int]:
        """Run calls side by side.

        Returns:
            Those that a hook wants to run again.
        """
        again: list[int] = []
        failures: list[Exception] = []

        async def conclude(run: Run, outcome: ToolOutcome) -> None:
            try:
                if await self._conclude(run, outcome):
                    again.append(run.call.index)
            except Exception as error:  # the other calls run already: they conclude first
                failures.append(error)

        for run in runs:
            approvals = approved_by([*self._ledger.of(run.call.index), *self._ledger.of(None)])
            self._context.note("tool_started", index=run.call.index, tool=run.call.tool, digest=run.call.digest,
                               approved_by=approvals)  # fmt: skip
            if isinstance(run.tool, OutputTool):
                self._pending.outputs[run.call.index] = run.call.input
                await conclude(run, run.tool.outcome(run.call))
        outside = [run for run in runs if not isinstance(run.tool, OutputTool)]
        if outside:
            calls = [run.call for run in outside]
            await self._context.effects.call_tools(calls, lambda place, outcome: conclude(outside[place], outcome))
        if failures:
            raise failures[0]
        return sorted(again)

    async def _conclude(self, run: Run, outcome: ToolOutcome) -> bool:
        """Take one call's outcome. True if a hook wants it to run again."""
        index, use_id = run.call.index, run.call.tool_use_id
        self._context.agent.state.merge(outcome.state_set, outcome.state_deleted)
        surely = {"not_run": True} if outcome.not_run else {}
        self._context.note("tool_ended", index=index, tool=run.call.tool, outcome=outcome.kind, detail=outcome.detail,
                           **surely)  # fmt: skip
        if outcome.kind == "interrupt" and outcome.ask is not None:
            ask = Ask(outcome.ask.name, outcome.ask.reason, outcome.ask.answers)
            shown = ShownCall(index=index, tool_use_id=use_id, tool=run.call.tool, input=run.call.input,
                              input_schema=run.tool.tool_spec["inputSchema"]["json"])  # fmt: skip
            self._note_asked(self._ledger.open("tool", index, ask, [shown], fresh=True))
            return False
        if outcome.kind == "unknown":
            doubt(self._pending, index, outcome.detail, not_run=outcome.not_run)
            await self._decide(index, [])
            return False
        if outcome.kind == "never_started":
            self._finish(index, error_result(use_id, f"Not run: {outcome.detail}"))
            return False
        return await self._take_result(run, outcome)

    async def _take_result(self, run: Run, outcome: ToolOutcome) -> bool:
        index = run.call.index
        self._pending.executions[index] = self._pending.executions.get(index, 0) + 1
        result = outcome.result or error_result(run.call.tool_use_id, "Error: the tool returned nothing")
        words = words_for_the_model(list(self._ledger.of(index)), self._pending.edits.get(index))
        if words is not None:
            result = {**result, "content": [*result["content"], {"text": words}]}
        event = AfterToolCallEvent(
            self._context.agent,
            selected_tool=run.tool,
            tool_use=run.tool_use,
            invocation_state=self._context.invocation_state,
            result=copy.deepcopy(result),
            exception=_as_exception(outcome.error),
            duration=outcome.duration_s,
        )
        failed_before = self._pass.error is not None
        await self._fire_after(event)
        wanted = self._pass.error is None and event.retry and not self._context.cancelled
        if wanted and self._pending.executions[index] >= EXECUTION_LIMIT:
            text = f"a hook wants to retry {run.call.tool} for ever; {EXECUTION_LIMIT} runs of one call are the most"
            self._pass.error, wanted = CallbackError("AfterToolCallEvent", RetryLimitError(text)), False
        if wanted:
            if not run.tool.idempotent:
                self._ledger.settle(index)  # an approval covers one execution
                self._ledger.forget_inline(index)
            return True
        # A failing After callback never costs the result that the tool returned.
        self._finish(index, event.result if self._pass.error is None or failed_before else result)
        return False

    async def _fire_after(self, event: AfterToolCallEvent) -> None:
        """Fire an After event; its first failure is kept, so that the other calls still conclude."""
        result = copy.deepcopy(event.result)
        try:
            await self._context.runner.fire(event)
        except CallbackError as error:
            self._pass.error = self._pass.error or error
        fault = _fault(event.result)
        if fault is not None:
            cause = TypeError(f"a hook has made event.result unusable: {fault}")
            self._pass.error = self._pass.error or CallbackError("AfterToolCallEvent", cause)
            event.result = result

    async def _after_tools(self) -> list[ContentBlock] | None:
        """Fire AfterToolsEvent with what this pass produced.

        Returns:
            Content of the final assistant message if a hook ends the turn.
        """
        message: Message = results_message(self._pass.produced[index] for index in sorted(self._pass.produced))
        event = AfterToolsEvent(self._context.agent, message=message, invocation_state=self._context.invocation_state)
        try:
            await self._context.runner.fire(event)
        except CallbackError as error:
            self._pass.error = self._pass.error or error
            return None
        if event.end_turn is False:
            return None
        if isinstance(event.end_turn, list) and event.end_turn:
            return event.end_turn
        given = event.end_turn if isinstance(event.end_turn, str) else True  # an empty list ends the turn too
        return [{"text": cancel_text(given, "Turn ended early by hook after tool execution")}]


def _fault(result: Any) -> str | None:
    """Why something can't be a tool's result; None if it can."""
    if not isinstance(result, dict) or result.get("status") not in ("success", "error"):
        return 'it must be a dict with "status" and "content"'
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return '"content" must be a list of content blocks'
    try:
        check_json(result, "event.result")
    except TypeError as error:
        return str(error)
    return None


def _as_exception(error: ErrorInfo | None) -> Exception | None:
    """A tool's error as hooks see it; its own type lives in the tool's process."""
    if error is None:
        return None
    kind = type(error.type, (Exception,), {"__module__": "countersign.tool_errors"})
    raised: Exception = kind(error.message)
    return raised
