"""The core's own questions: about calls that may have run, and approvals that don't cover what would run now."""

from collections.abc import Iterator
from typing import Any

from countersign.agent_core.approvals import (
    INPUT_CHANGED_QUESTION,
    POLICY_CHANGED_QUESTION,
    RUN_AGAIN_QUESTION,
    Ask,
    Ledger,
)
from countersign.agent_core.calls_in_doubt import resolve
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.cycle.decision import Asked, Decision, Refused
from countersign.agent_core.cycle.refusals import note_refused
from countersign.agent_core.cycle.signatures import as_it_would_run
from countersign.agent_core.interrupts import call_digest, question_digest, refused
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import ToolUse, error_result
from countersign.agent_core.plain_answers import approves
from countersign.agent_core.unknown_outcomes import NOT_RUN_NOTE, UNKNOWN_OUTCOME_QUESTION, outcome_choice
from countersign.agent_core.wire import Pending, Question, ShownCall


class Gates:
    """What a call must pass beside its hooks and handlers. Each gate lets it through by None.

    Args:
        context: The cycle.
        pending: The batch.
        ledger: Its questions.
    """

    def __init__(self, context: CycleContext, pending: Pending, ledger: Ledger) -> None:
        self._context, self._pending, self._ledger = context, pending, ledger

    def unknown_outcome(self, index: int, original: ToolUse) -> Decision | None:
        """A call that may have run: a person says whether it runs again, is left, or what it returned."""
        use_id, detail = original["toolUseId"], self._pending.unknown[index]
        not_run = index in self._pending.not_run
        question = self._ledger.standing("core", index, UNKNOWN_OUTCOME_QUESTION)
        given = question.answer if question is not None and question.status == "answered" else None
        response: Any = given.response if given else None
        choice = outcome_choice(response) if given else None
        lapsed = question is not None and choice == "retry" and self._ledger.lapsed(question)
        if given is None or lapsed:
            note = NOT_RUN_NOTE if not_run else "The call may have run. Nobody knows."
            call = self._in_doubt(index, original)
            reason = {"tool": call.tool, "detail": detail, "note": note}
            answers = {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}}
            ask = Ask(UNKNOWN_OUTCOME_QUESTION, reason, answers)
            return Asked([self._ledger.open("core", index, ask, [call], fresh=True)])
        if choice == "retry":
            return None  # hooks, handlers and the other gates have their say; then it is used up: see `repeated`
        self._context.note("unknown_outcome_resolved", tool=original["name"], response=response)
        if choice == "result":
            value = response["result"]
            block = {"text": value} if isinstance(value, str) else {"json": value}
            return Refused({"toolUseId": use_id, "status": "success", "content": [block]}, original)
        text = "This call may or may not have run; a person decided not to run it again."
        if not_run:
            text = "This call has not run; a person decided not to run it."
        return Refused(error_result(use_id, text), original, cancel_message=text)

    def _in_doubt(self, index: int, original: ToolUse) -> ShownCall:
        """What may have run: as it was issued, or, if nobody knows that, as it would run if no hook changed it."""
        if index in self._pending.issued:
            return self._pending.issued[index]
        tool = self._context.agent.tool_registry.get(str(original["name"]))
        given = as_it_would_run(tool, self._pending.edits.get(index, original["input"]))
        return ShownCall(index=index, tool_use_id=original["toolUseId"], tool=str(original["name"]), input=given)

    def repeated(self, index: int) -> None:
        """Use up a person's "retry". It covers one repetition: if that one is lost too, they are asked again."""
        question = self._retry(index)
        if question is not None and question.answer is not None:
            tool = question.calls[0].tool if question.calls else ""
            self._context.note("unknown_outcome_resolved", tool=tool, response=question.answer.response)
            question.status = "settled"
            resolve(self._pending, index)

    def _retry(self, index: int) -> Question | None:
        """A person's "retry" about a call that may have run, if it is not used up."""
        question = self._ledger.latest("core", index, UNKNOWN_OUTCOME_QUESTION)
        waits = question is not None and question.status == "answered" and index in self._pending.unknown
        return question if waits else None

    def refused_before(self, use: ToolUse, shown: ShownCall, gone: list[Question]) -> Decision | None:
        """Answers that nobody asks for any more: a refusal stays one, whoever else asks."""
        for question in [*(q for q in gone if refused(q)), *self._refusals(shown)]:
            response = question.answer.response if question.answer else None
            text = f"Not run: a person refused it ({question.name}: {response!r})."
            note_refused(self._context, shown.index, shown.tool, text, by="person", question=question.id)
            return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
        return None

    def _refusals(self, shown: ShownCall) -> Iterator[Question]:
        """What was refused to a gate, which may find nothing to ask about now, or to a tool that would not run now."""
        for question in self._ledger.of(shown.index):
            if question.status != "answered" or question.answer is None:
                continue
            if question.scope == "core" and question.name != UNKNOWN_OUTCOME_QUESTION:
                no = not approves(question.answer.response)
            elif question.scope == "tool":
                same = any(call_digest(call.tool, call.input) == call_digest(shown.tool, shown.input)
                           for call in question.calls)  # fmt: skip
                no = refused(question) and not same  # the tool that asked hears it
            else:
                no = False
            if no:
                yield question

    def policy_changed(self, index: int, shown: ShownCall, gone: list[Question]) -> Decision | None:
        """Answers whose question is not asked any more, no refusal among them: a person decides anew."""
        found: list[JsonObject] = [
            {"was_asked": question.name, "reason": question.reason, "response": question.answer.response}
            for question in gone if question.answer is not None
        ]  # fmt: skip
        note = "The policy that asked this has changed since it was answered."
        return self._gate(index, shown, POLICY_CHANGED_QUESTION, found, note)

    def input_changed(self, index: int, shown: ShownCall) -> Decision | None:
        """What the approval of a batch and a "retry" cover: the call as it was shown."""
        retry, found = self._retry(index), []
        for question in [*self._ledger.of(None), *([retry] if retry else [])]:
            signed = next((call for call in question.calls if call.index == index), None)
            covered = signed and call_digest(signed.tool, signed.input) == call_digest(shown.tool, shown.input)
            if question.status == "answered" and not covered:
                what = {"tool": signed.tool, "input": signed.input} if signed else None
                found.append({"was_asked": question.name, "reason": question.reason, "signed": what})
        note = "The call was changed after it was approved."
        return self._gate(index, shown, INPUT_CHANGED_QUESTION, found, note)

    def run_again(self, index: int, shown: ShownCall) -> Decision | None:
        """What an approval covers that nobody asks for again: one run."""
        runs = self._pending.executions.get(index, 0)
        tool = self._context.agent.tool_registry.get(shown.tool)
        if not runs or (tool and tool.idempotent):
            return None
        approvals = [question for question in self._ledger.of(None) if question.status == "answered"]
        changed = self._ledger.latest("core", index, POLICY_CHANGED_QUESTION)
        if changed is not None and changed.status == "settled":  # used up: its policy does not ask
            approvals.append(changed)
        found: list[JsonObject] = [{"was_asked": question.name, "runs": runs} for question in approvals]
        note = "A hook asks to run this call again."
        return self._gate(index, shown, RUN_AGAIN_QUESTION, found, note)

    def _gate(self, index: int, shown: ShownCall, name: str, found: list[JsonObject], note: str) -> Decision | None:
        """One question of Countersign's own about all that was found. None once it is approved, and if nothing was.

        That it was not refused, `refused_before` has seen.
        """
        if not found:
            return None
        first, *more = found
        ask = Ask(name, {**first, **({"also": more} if more else {}), "note": note}, None)
        question = self._ledger.latest("core", index, name)
        if question is None or question.status != "answered":
            return Asked([self._ledger.open("core", index, ask, [shown])])
        if question.digest != question_digest(ask.name, ask.reason, [shown]) or self._ledger.lapsed(question):
            return Asked([self._ledger.open("core", index, ask, [shown], fresh=True)])
        return None
