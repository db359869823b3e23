"""The calls of one model message: their results so far, and their questions."""

from datetime import timedelta

from countersign.agent_core.approvals import Ledger
from countersign.agent_core.audit_values import bounded
from countersign.agent_core.calls_in_doubt import given_up
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.errors import CallbackError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import ToolResult, tool_uses
from countersign.agent_core.wire import Pending, Question

STOPPED_TEXT = "Tool execution cancelled"


class Batch:
    """One pass over the calls of a message.

    Args:
        context: The cycle.
        pending: What is known of the calls; changed in place.

    Attributes:
        uses: The calls as the model made them.
        ledger: Their questions.
        produced: The results of this pass, by the call's place.
        error: What went wrong first; calls that run are concluded all the same.
    """

    def __init__(self, context: CycleContext, pending: Pending) -> None:
        self.context, self.pending = context, pending
        self.uses = tool_uses(pending.message)
        given = context.given
        self.ledger = Ledger(
            given.session_id + given.session_run,
            pending,
            context.effects.now,
            timedelta(seconds=given.default_deadline_s),
            timedelta(seconds=given.approval_ttl_s),
        )
        self.produced: dict[int, ToolResult] = {}
        self.error: CallbackError | None = None
        self._noted = {question.id for question in pending.questions}
        self._withdrawn = {question.id for question in pending.questions if question.status == "withdrawn"}

    def unfinished(self) -> list[int]:
        """The places of the calls that have no result."""
        return [index for index in range(len(self.uses)) if index not in self.pending.results]

    def failed(self, error: CallbackError) -> None:
        """Keep an error, if it is the first."""
        self.error = self.error or error

    def finish(self, index: int, result: ToolResult) -> None:
        """Give a call its result, whatever id a hook put into it, and close its questions."""
        result = {**result, "toolUseId": self.uses[index]["toolUseId"]}
        self.pending.results[index] = result
        self.produced[index] = result
        self.ledger.settle(index)
        if not self.unfinished():
            self.ledger.settle(None)
        self.note_withdrawn()

    def finish_rest(self, text: str) -> None:
        """Give every call that has no result an error result: it did not run, or nobody knows."""
        for index in self.unfinished():
            self.finish(index, given_up(self.pending, index, text))

    def note_asked(self, question: Question) -> None:
        """Tell the audit trail of a question."""
        if question.id in self._noted:  # asked before, and still open: one line in the audit trail is enough
            return
        self._noted.add(question.id)
        if question.id in self.ledger.void:
            tools = ", ".join(dict.fromkeys(call.tool for call in question.calls))
            self.context.note("approval_void", tool=tools, questions=[question.name], why=question.fault)
        calls: list[JsonObject] = [{"tool": call.tool, "input": call.input} for call in question.calls]
        self.context.note("question_asked", question=question.id, name=question.name, digest=question.digest,
                          **bounded(reason=question.reason, calls=calls))  # fmt: skip

    def note_withdrawn(self) -> None:
        """Tell the audit trail of the questions that were asked and are asked no more, for whatever reason."""
        for question in self.pending.questions:
            if question.status == "withdrawn" and question.id in self._noted - self._withdrawn:
                self._withdrawn.add(question.id)
                self.context.note("question_withdrawn", question=question.id, name=question.name)
