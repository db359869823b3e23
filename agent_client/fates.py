"""What became of a question that is not open any more, by the audit trail. Pure."""

from typing import Literal, NamedTuple

from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.wire import AuditEntry


class Fate(NamedTuple):
    """What became of a question.

    Attributes:
        kind: The word for it.
        code: Of the refusal that a later answer gets.
        words: Of that refusal.
    """

    kind: Literal["answered", "expired", "withdrawn"]
    code: str
    words: str


FATES = {
    "answered": Fate("answered", "already_answered", "was already answered by {who} at {at}"),
    "expired": Fate("expired", "expired", "expired at {at}; it can't be answered any more"),
    "question_withdrawn": Fate("withdrawn", "withdrawn", "was withdrawn at {at}; it is not asked any more"),
}
"""What becomes of a question, by the audit trail's event."""


def refusal_after(interrupt_id: str, entry: AuditEntry) -> AnswerRefused:
    """The refusal of an answer to a question that the audit trail tells the fate of."""
    _, code, words = FATES[entry.event]
    responder = (entry.detail.get("answer") or {}).get("responder") or {}
    return AnswerRefused(code, f"{interrupt_id} {words.format(who=responder.get('id') or 'somebody', at=entry.at)}")
