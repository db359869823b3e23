"""The calls of a batch: decided, run, and their results taken.

Decisions are made one call after the other, in the order of the model's message; then the calls
that may run do so side by side; then hooks see the results one at a time.
"""

import copy
from collections.abc import Sequence
from typing import Any

from countersign.agent_core.approvals import Ask
from countersign.agent_core.audit_values import bounded
from countersign.agent_core.calls_in_doubt import doubt, resolve, with_doubt
from countersign.agent_core.cycle.batch import STOPPED_TEXT, Batch
from countersign.agent_core.cycle.decider import Decider
from countersign.agent_core.cycle.decision import Asked, Refused, Run
from countersign.agent_core.cycle.signatures import approved_by, words_for_the_model
from countersign.agent_core.errors import CallbackError, RetryLimitError
from countersign.agent_core.hooks.events import AfterToolCallEvent
from countersign.agent_core.json_values import check_json
from countersign.agent_core.messages import ToolResult, ToolUse, error_result, not_run
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.wire import ErrorInfo, ShownCall, ToolOutcome

EXECUTION_LIMIT = 50
"""The most runs of one call that hooks may ask for."""


class Calls:
    """Decides and runs calls of a batch.

    Args:
        batch: Takes their results and questions.
        decider: Says what becomes of a call.
    """

    def __init__(self, batch: Batch, decider: Decider) -> None:
        self._batch, self._context, self._decider = batch, batch.context, decider
        self._writers: dict[str, int] = {}  # which of the calls that run side by side wrote a key of the state last

    async def take_recovered(self) -> None:
        """Conclude the calls that a failed cycle ran: no hook and no handler has seen their results."""
        recovered, self._batch.pending.recovered = self._batch.pending.recovered, {}
        for index, found in sorted(recovered.items()):
            if found.outcome is None:
                continue
            use = self._batch.uses[index]
            if found.call is not None:  # what ran, not what the model asked for
                use = {**use, "name": found.call.tool, "input": found.call.input}
            self._context.note("result_recovered", index=index, tool=use["name"], status=found.outcome.status)
            await self._take_result(index, use, self._context.agent.tool_registry.get(str(use["name"])), found.outcome)

    async def together(self, indexes: Sequence[int]) -> None:
        """Decide and run until no hook asks for another try."""
        again = [index for index in indexes if not self._waits_in_body(index)]
        while again and self._batch.error is None:
            runs: list[Run] = []
            for index in again:
                await self._decide(index, runs)
            if self._context.effects.stop_requested:  # it came while a hook waited: what has not begun does not begin
                self._batch.finish_rest(STOPPED_TEXT)
                return
            again = await self._execute(runs)

    def _waits_in_body(self, index: int) -> bool:
        """True if the call's body has asked and nobody has answered: it need not run only to ask again."""
        if index in self._batch.pending.unknown:
            return False
        return any(question.scope == "tool" and question.status == "open" for question in self._batch.ledger.of(index))

    async def _decide(self, index: int, runs: list[Run]) -> None:
        before = self._context.agent.memory.take()
        decision = await self._decider.decide(index, self._batch.uses[index])
        if isinstance(decision, Run):
            runs.append(decision)
        elif isinstance(decision, Asked):
            # The handlers will be asked again on resume; they must not count this call twice.
            self._context.agent.memory.restore(before)
            for question in decision.questions:
                self._batch.note_asked(question)
        else:
            self._batch.finish(index, await self._after_refusal(index, decision))

    async def _after_refusal(self, index: int, refused: Refused) -> ToolResult:
        result, runs = refused.result, self._batch.pending.executions.get(index, 0)
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
        self._writers = {}

        async def conclude(run: Run, outcome: ToolOutcome) -> None:
            try:
                if await self._conclude(run, outcome):
                    again.append(run.call.index)
            except Exception as error:  # the other calls run already: they conclude first
                failures.append(error)

        for run in runs:
            approvals = approved_by([*self._batch.ledger.of(run.call.index), *self._batch.ledger.of(None)])
            self._context.note("tool_started", index=run.call.index, tool=run.call.tool, digest=run.call.digest,
                               approved_by=[*approvals, *run.inline], **bounded(input=run.call.input))  # fmt: skip
            if isinstance(run.tool, OutputTool):
                self._batch.pending.outputs[run.call.index] = run.call.input
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
        self._take_writes(index, outcome)
        surely = {"not_run": True} if outcome.not_run else {}
        self._context.note("tool_ended", index=index, tool=run.call.tool, outcome=outcome.kind, detail=outcome.detail,
                           status=outcome.status, **surely)  # fmt: skip
        if outcome.kind not in ("never_started", "lapsed"):
            self._decider.begun(index)
        if outcome.kind == "interrupt" and outcome.ask is not None:
            ask = Ask(outcome.ask.name, outcome.ask.reason, outcome.ask.answers)
            shown = ShownCall(index=index, tool_use_id=use_id, tool=run.call.tool, input=run.call.input,
                              input_schema=run.tool.tool_spec["inputSchema"]["json"])  # fmt: skip
            self._batch.note_asked(self._batch.ledger.open("tool", index, ask, [shown], fresh=True))
            return False
        if outcome.kind == "unknown":
            doubt(self._batch.pending, index, outcome.detail, call=run.call, not_run=outcome.not_run)
            await self._decide(index, [])
            return False
        if outcome.kind == "never_started":
            self._not_run(index, outcome)
            return False
        if outcome.kind == "lapsed":
            runs: list[Run] = []
            await self._decide(index, runs)  # asks the question once more
            same = bool(runs) and runs[0].call.not_after == run.call.not_after
            if same and index in self._batch.pending.unknown:
                self._not_run(index, outcome)
            elif same or (runs and index not in self._batch.pending.unknown and self._batch.ledger.batch_lapsed()):
                doubt(self._batch.pending, index, outcome.detail, call=run.call, not_run=True)
                await self._decide(index, [])
            elif runs:
                return True  # approved inline once more; or its own body asks, without the answers that have lapsed
            return False
        return await self._take_result(index, run.tool_use, run.tool, outcome)

    def _take_writes(self, index: int, outcome: ToolOutcome) -> None:
        """Merge what a tool wrote to `agent.state`, as if tools side by side had ended in the order of their calls."""
        keys = [key for key in (*outcome.state_set, *outcome.state_deleted) if self._writers.get(key, index) <= index]
        self._writers.update(dict.fromkeys(keys, index))
        written = {key: value for key, value in outcome.state_set.items() if key in keys}
        self._context.agent.state.merge(written, [key for key in outcome.state_deleted if key in keys])

    def _not_run(self, index: int, outcome: ToolOutcome) -> None:
        """Give a call that has not begun its result: an error."""
        result = error_result(self._batch.uses[index]["toolUseId"], f"Not run: {outcome.detail}")
        self._batch.finish(index, with_doubt(self._batch.pending, index, result))

    async def _take_result(self, index: int, use: ToolUse, tool: Tool | None, outcome: ToolOutcome) -> bool:
        """Show the hooks what a call returned. True if one wants it to run again."""
        resolve(self._batch.pending, index)
        self._batch.pending.executions[index] = self._batch.pending.executions.get(index, 0) + 1
        result = outcome.result or error_result(use["toolUseId"], "Error: the tool returned nothing")
        words = words_for_the_model(list(self._batch.ledger.of(index)), self._batch.pending.edits.get(index))
        if words is not None:
            result = {**result, "content": [*result["content"], {"text": words}]}
        event = AfterToolCallEvent(
            self._context.agent,
            selected_tool=tool,
            tool_use=use,
            invocation_state=self._context.invocation_state,
            result=copy.deepcopy(result),
            exception=_as_exception(outcome.error),
            duration=outcome.duration_s,
        )
        failed_before = self._batch.error is not None
        await self._fire_after(event)
        wanted = self._batch.error is None and event.retry and not self._context.cancelled
        if wanted and self._batch.pending.executions[index] >= EXECUTION_LIMIT:
            text = f"a hook wants to retry {use['name']} for ever; {EXECUTION_LIMIT} runs of one call are the most"
            self._batch.error, wanted = CallbackError("AfterToolCallEvent", RetryLimitError(text)), False
        if wanted:
            if tool is None or not tool.idempotent:
                self._batch.ledger.settle(index)  # an approval covers one execution
                self._batch.ledger.forget_inline(index)
            return True
        # A failing After callback never costs the result that the tool returned.
        self._batch.finish(index, event.result if self._batch.error is None or failed_before else result)
        return False

    async def _fire_after(self, event: AfterToolCallEvent) -> None:
        """Fire an After event; its first failure is kept, so that the other calls still conclude."""
        result = copy.deepcopy(event.result)
        try:
            await self._context.runner.fire(event)
        except CallbackError as error:
            self._batch.failed(error)
        fault = _fault(event.result)
        if fault is not None:
            cause = TypeError(f"a hook has made event.result unusable: {fault}")
            self._batch.failed(CallbackError("AfterToolCallEvent", cause))
            event.result = result


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
