"""Decides for one call: does it run, is it refused, or must a person be asked?

This is where an approval is held against what would run now (docs/approvals.md, rules 1 to 4 and 10).
"""

import contextlib
import copy

from countersign.agent_core.approvals import Ask, Ledger
from countersign.agent_core.asking import Asking
from countersign.agent_core.calls_in_doubt import doubt_words, with_doubt
from countersign.agent_core.cycle.context import CycleContext, cancel_text
from countersign.agent_core.cycle.decision import Asked, Decision, Refused, Run
from countersign.agent_core.cycle.edits import Edits
from countersign.agent_core.cycle.gates import Gates
from countersign.agent_core.cycle.refusals import note_refused
from countersign.agent_core.cycle.signatures import answers_for_the_tool, as_it_would_run, denied, signed
from countersign.agent_core.errors import ToolError, ToolInputError
from countersign.agent_core.hooks.events import BeforeToolCallEvent
from countersign.agent_core.interrupts import approved, call_digest, refused
from countersign.agent_core.json_values import digest
from countersign.agent_core.messages import ToolUse, error_result
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.wire import Pending, Question, ShownCall, ToolCall

REFUSAL_LIMIT = 3
"""How often the model may repeat a refused call in one turn before nobody is asked any more."""

HEARINGS = 10
"""How often hooks and handlers are heard in one pass about a call that they, or people inline, keep changing."""


class Decider:
    """Decides for the calls of one batch.

    Args:
        context: The cycle.
        pending: The batch.
        ledger: Its questions.
    """

    def __init__(self, context: CycleContext, pending: Pending, ledger: Ledger) -> None:
        self._context = context
        self._pending = pending
        self._ledger = ledger
        self._gates, self._edits = Gates(context, pending, ledger), Edits(context, pending, ledger)
        self.batch_gone: list[Question] = []
        """Answered questions of the batch hook that it does not ask any more."""

    async def decide(self, index: int, original: ToolUse) -> Decision:
        """Run the hooks and handlers of one call and weigh what they and people said.

        Args:
            index: The call's place in the model's message.
            original: The call as the model made it, from which every pass starts anew.

        Raises:
            CallbackError: If a hook or handler fails.
        """
        self._ledger.forget_lapsed(index)
        settled = self._from_people(index, original)
        if settled is not None:
            return settled
        call: ToolUse = {**original, "input": self._pending.edits.get(index, original["input"])}
        decision = await self._hear(index, call)
        if isinstance(decision, Refused):
            # If a person wanted it to run again, and something else does not, it may have run all the same.
            decision.result = with_doubt(self._pending, index, decision.result)
        return decision

    def begun(self, index: int) -> None:
        """Take a person's "retry" for used up."""
        self._gates.repeated(index)

    async def _hear(self, index: int, call: ToolUse, hearing: int = 1) -> Decision:
        """Run the hooks and handlers of a call, again if they or a person made another one of it.

        Args:
            index: The call's place in the model's message.
            call: The call that they are heard about; they get a copy.
            hearing: Which one it is in this pass.
        """
        use = copy.deepcopy(call)
        named = self._context.agent.tool_registry.get(str(use["name"]))
        use["input"] = as_it_would_run(named, use["input"])
        before = self._context.agent.memory.take()
        asking = Asking(self._ledger, "call", index)
        event = BeforeToolCallEvent(
            self._context.agent, selected_tool=named, tool_use=use, invocation_state=self._context.invocation_state
        )
        await self._context.runner.fire(event, asking)
        use = {**event.tool_use, "toolUseId": call["toolUseId"]}
        if event.cancel_tool is not False:
            return self._cancelled(index, use, asking, cancel_text(event.cancel_tool, "tool cancelled by user"))
        if asking.edit is not None and self._edits.changes(use, asking, *asking.edit):
            self._context.agent.memory.restore(before)  # they are all heard once more
            unusable = self._edits.take(index, use, asking, *asking.edit)
            return unusable or await self._hear_anew(index, {**call, "input": self._pending.edits[index]}, hearing)
        stands = event.as_it_stands() if asking.inline else None
        for name in (name for name, answer in asking.inline.items() if answer.call != stands):
            text = f"Not run: the call was changed after a person had approved it ({name})."
            self._context.note("approval_void", tool=use["name"], questions=[name])
            return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
        shown = self._what_runs(index, use, event, named)
        if isinstance(shown, Refused):
            note_refused(self._context, index, use["name"], shown.result["content"][0]["text"], by="countersign")
            return shown
        if any(self._runs_as(name, selected, named) != shown.tool for name, selected in asking.heard):
            # A handler was heard about another tool than the one that would run: they are all heard about that one.
            self._context.agent.memory.restore(before)
            return await self._hear_anew(index, {**call, "name": shown.tool, "input": shown.input}, hearing)
        return self._denied(index, use, asking) or self._weigh(index, use, shown, asking)

    async def _hear_anew(self, index: int, call: ToolUse, hearing: int) -> Decision:
        """Hear them all about the call that was made of theirs, but not for ever."""
        if hearing == HEARINGS:
            text = f"Not run: hooks, handlers and approvers keep changing this call (now {call['name']})."
            note_refused(self._context, index, call["name"], text, by="countersign")
            return Refused(error_result(call["toolUseId"], text), call, cancel_message=text)
        return await self._hear(index, call, hearing + 1)

    def _from_people(self, index: int, original: ToolUse) -> Decision | None:
        """What answers say before any code is asked: expired questions, calls that may have run."""
        for question in [*self._ledger.of(index), *self._ledger.of(None)]:
            if question.status == "expired":
                self._context.note("call_expired", tool=original["name"], question=question.id)
                known = doubt_words(self._pending, index)
                late = f"nobody answered the question {question.name!r} in time (it expired, it was not denied)."
                text = f"{known}; {late}" if known else f"Not run: {late}"
                return Refused(error_result(original["toolUseId"], text), original, cancel_message=text)
        if index not in self._pending.unknown:
            return None
        return self._gates.unknown_outcome(index, original)

    def _cancelled(self, index: int, use: ToolUse, asking: Asking, text: str) -> Refused:
        """A hook or handler said no; if a person said it first, the repetition is counted."""
        said_no = [question for question in asking.consumed.values() if not approved(question) or denied(question)]
        clearly = [question.id for question in said_no if refused(question) or denied(question)]
        inline = [None for answer in asking.inline.values() if not answer.approved]
        for question in [*clearly, *inline]:
            note_refused(self._context, index, use["name"], text, by="person", question=question)
        if not clearly and not inline:
            note_refused(self._context, index, use["name"], text, by="policy", who=asking.cancelled_by or None)
        if said_no:
            key = self._refusal_key(use)
            self._context.progress.refused[key] = self._context.progress.refused.get(key, 0) + 1
        return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)

    def _denied(self, index: int, use: ToolUse, asking: Asking) -> Refused | None:
        """A no that whoever asked did not take for one: the person pressed Deny, and the call does not run."""
        no = next((question for question in asking.consumed.values() if denied(question)), None)
        if no is None:
            return None
        response = no.answer.response if no.answer else None
        return self._cancelled(index, use, asking, f"Not run: a person refused it ({no.name}: {response!r}).")

    def _refusal_key(self, use: ToolUse) -> str:
        """The digest under which refusals of a call are counted: that of the call as it would have run."""
        name, value = str(use["name"]), use["input"]
        tool = self._context.agent.tool_registry.get(name)
        if tool is not None:
            with contextlib.suppress(ToolInputError):  # it could not have run: the model's words are as good a key
                value = tool.canonical_input(value)
        return call_digest(name, value)

    def _what_runs(
        self, index: int, use: ToolUse, event: BeforeToolCallEvent, named: Tool | None
    ) -> ShownCall | Refused:
        """The final call, validated and with defaults filled in; or why it can't run."""
        registry = self._context.agent.tool_registry
        tool = event.selected_tool
        if tool is named:
            tool = registry.get(str(use["name"]))
        if tool is not None and registry.get(tool.tool_name) is not tool:
            text = f"Error: a hook selected {tool.tool_name!r}, which is not one of the agent's tools"
            return Refused(error_result(use["toolUseId"], text), use)
        if tool is None:
            text = f"Unknown tool: {use['name']}"
            return Refused(error_result(use["toolUseId"], text), use, error=ToolError(text))
        try:
            canonical = tool.canonical_input(use["input"])
        except ToolInputError as error:
            return Refused(error_result(use["toolUseId"], f"Error: {error}"), use, tool=tool, error=error)
        return ShownCall(
            index=index,
            tool_use_id=use["toolUseId"],
            tool=tool.tool_name,
            input=canonical,
            input_schema=tool.tool_spec["inputSchema"]["json"],
        )

    def _runs_as(self, name: str, selected: Tool | None, named: Tool | None) -> str | None:
        """The tool that a call of that name stands for; a hook may have selected another one."""
        tool = self._context.agent.tool_registry.get(str(name)) if selected is named else selected
        return tool.tool_name if tool is not None else None

    def _weigh(self, index: int, use: ToolUse, shown: ShownCall, asking: Asking) -> Decision:
        gone = [*self.batch_gone, *asking.unasked()]
        refusal = self._gates.refused_before(use, shown, gone)
        if refusal is not None:
            return refusal
        key = call_digest(shown.tool, shown.input)
        if asking.asked and self._context.progress.refused.get(key, 0) >= REFUSAL_LIMIT:
            text = f"Not run: this very call was refused {REFUSAL_LIMIT} times in this turn. Do something else."
            note_refused(self._context, index, use["name"], text, by="countersign")
            return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
        if asking.asked:
            # Every question of this event is asked, those already answered stay answered.
            return Asked([self._ledger.open("call", index, ask, [shown], fresh=True) for ask in asking.asked])
        self._ledger.withdraw_unasked("call", index)
        changed = self._gates.policy_changed(index, shown, gone)
        if changed is not None:
            return changed
        stale = [
            self._ledger.open("call", index, Ask(q.name, asking.reasons[q.name], q.answers), [shown], fresh=True)
            for q in asking.consumed.values()
            if not signed(q, shown)
        ]
        if stale:
            return Asked(stale)
        asked = self._gates.input_changed(index, shown) or self._gates.run_again(index, shown)
        if asked is not None:
            return asked
        run = self._run(index, use, shown)
        for name, answer in asking.inline.items():
            run.inline.append({"question": None, "inline": name, "response": answer.response, "responder": None})
        return run

    def _run(self, index: int, use: ToolUse, shown: ShownCall) -> Run:
        tool = self._context.agent.tool_registry.get(shown.tool)
        assert tool is not None  # _what_runs has found it
        given, origin = self._context.given, self._pending.origin_cycle
        runs = self._pending.executions.get(index, 0)
        call = ToolCall(
            agent=given.agent,
            session_id=given.session_id,
            cycle=given.cycle,
            index=index,
            tool=shown.tool,
            tool_use_id=use["toolUseId"],
            input=shown.input,
            digest=call_digest(shown.tool, shown.input),
            idempotency_key=digest([given.session_id + given.session_run, origin, index, runs])[:32],
            agent_state=self._context.agent.state.get(),
            invocation_state=self._context.invocation_state,
            answers=answers_for_the_tool([*self._ledger.of(index)], shown, self._ledger.lapsed),
            message=self._pending.message if self._pending.message != self._context.answered else None,
            not_after=lapse.isoformat() if (lapse := self._ledger.lapse_of(index)) else None,
        )
        return Run(call, tool, {**use, "name": shown.tool, "input": shown.input})
