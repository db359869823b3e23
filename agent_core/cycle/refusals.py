"""What the audit trail says of calls that do not run: who refused them, and in which words."""

from collections.abc import Sequence
from typing import Literal

from countersign.agent_core.asking import Asking
from countersign.agent_core.audit_values import bounded
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.cycle.signatures import denied
from countersign.agent_core.interrupts import refused
from countersign.agent_core.wire import Question


def note_refused(
    context: CycleContext,
    index: int,
    tool: str,
    text: str,
    *,
    by: Literal["person", "policy", "countersign"],
    who: str | None = None,
    question: str | None = None,
) -> None:
    """Tell the audit trail of one call that is refused.

    Args:
        context: The cycle.
        index: The call's place in the model's message.
        tool: Its tool, as the model or a hook named it.
        text: What the model is told.
        by: A person; a hook or handler by itself; or Countersign, because it can't run or was refused too often.
        who: The hook or handler, if it was by policy.
        question: The id of the question that a person answered; None if there was none.
    """
    told = bounded(tool=str(tool), text=text)
    context.note("call_refused", index=index, by=by, who=who, question=question, **told)


def note_batch_refused(context: CycleContext, asking: Asking, questions: Sequence[Question], text: str) -> None:
    """Tell the audit trail of a message whose calls are all refused.

    Args:
        context: The cycle.
        asking: What was asked about the batch.
        questions: Those whose answers count for it.
        text: What the model is told.
    """
    person = any(refused(question) or denied(question) for question in questions)
    context.note("batch_cancelled", questions=[question.id for question in questions],
                 by="person" if person else "policy", who=None if person else asking.cancelled_by or None,
                 **bounded(text=text))  # fmt: skip
