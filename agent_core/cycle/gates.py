"""The core's own questions: about calls that may have run, and approvals that don't cover what would run now."""

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
from countersign.agent_core.interrupts import call_digest, question_digest, refused
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
        question = self._ledger.latest("core", index, UNKNOWN_OUTCOME_QUESTION)
        if question is None or question.status != "answered" or question.answer is None:
            note = NOT_RUN_NOTE if not_run else "The call may have run. Nobody knows."
            reason = {"tool": original["name"], "detail": detail, "note": note}
            answers = {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}}
            shown = [ShownCall(index=index, tool_use_id=use_id, tool=original["name"], input=original["input"])]
            ask = Ask(UNKNOWN_OUTCOME_QUESTION, reason, answers)
            return Asked([self._ledger.open("core", index, ask, shown)])
        response = question.answer.response
        self._context.note("unknown_outcome_resolved", tool=original["name"], response=response)
        choice = outcome_choice(response)
        if choice == "retry":
            # It covers one repetition: if that one is lost too, a person is asked again.
            question.status = "settled"
            resolve(self._pending, index)
            return None
        if choice == "result":
            value = response["result"]
            block = {"text": value} if isinstance(value, str) else {"json": value}
            return Refused({"toolUseId": use_id, "status": "success", "content": [block]}, original)
        text = "This call may or may not have run; a person decided not to run it again."
        if not_run:
            text = "This call has not run; a person decided not to run it."
        return Refused(error_result(use_id, text), original, cancel_message=text)

    def policy_changed(self, index: int, use: ToolUse, shown: ShownCall, gone: list[Question]) -> Decision | None:
        """Answers whose question is not asked any more: a refusal stays, an approval is asked about again."""
        for question in gone:
            response = question.answer.response if question.answer else None
            if refused(question):
                text = f"Not run: a person refused it ({question.name}: {response!r})."
                self._context.note("call_refused", tool=shown.tool, question=question.id, text=text)
                return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
        for question in gone:
            response = question.answer.response if question.answer else None
            reason = {"was_asked": question.name, "reason": question.reason, "response": response,
                      "note": "The policy that asked this has changed since it was answered."}  # fmt: skip
            decision = self._gate(index, use, shown, Ask(POLICY_CHANGED_QUESTION, reason, None))
            if decision is not None:
                return decision
        return None

    def batch(self, index: int, use: ToolUse, shown: ShownCall) -> Decision | None:
        """What a batch approval covers: each call once, as it was shown."""
        for question in self._ledger.of(None):
            if question.status != "answered":
                continue
            signed = next((call for call in question.calls if call.index == index), None)
            if signed is None or call_digest(signed.tool, signed.input) != call_digest(shown.tool, shown.input):
                reason = {"was_asked": question.name, "reason": question.reason,
                          "signed": {"tool": signed.tool, "input": signed.input} if signed else None,
                          "note": "The call was changed after the batch was approved."}  # fmt: skip
                decision = self._gate(index, use, shown, Ask(INPUT_CHANGED_QUESTION, reason, None))
                if decision is not None:
                    return decision
            tool = self._context.agent.tool_registry.get(shown.tool)
            done = self._pending.executions.get(index, 0)
            if done and not (tool and tool.idempotent):
                reason = {"was_asked": question.name, "runs": done, "note": "A hook asks to run this call again."}
                decision = self._gate(index, use, shown, Ask(RUN_AGAIN_QUESTION, reason, None))
                if decision is not None:
                    return decision
        return None

    def _gate(self, index: int, use: ToolUse, shown: ShownCall, ask: Ask) -> Decision | None:
        """A question of Countersign's own. None once it is approved."""
        question = self._ledger.latest("core", index, ask.name)
        if question is None or question.status != "answered" or question.answer is None:
            return Asked([self._ledger.open("core", index, ask, [shown])])
        if question.digest != question_digest(ask.name, ask.reason, [shown]) or self._ledger.lapsed(question):
            return Asked([self._ledger.open("core", index, ask, [shown], fresh=True)])
        if approves(question.answer.response):
            return None
        text = f"Not run: a person refused it ({ask.name}: {question.answer.response!r})."
        self._context.note("call_refused", tool=shown.tool, question=question.id, text=text)
        return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
