"""What became of a question that is not open any more, by the audit trail. Pure."""

from typing import Literal, NamedTuple

from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.wire import AuditEntry, AuditEvent


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


_FATES: dict[AuditEvent, Fate] = {
    "answered": Fate("answered", "already_answered", "was already answered by {who} at {at}"),
    "expired": Fate("expired", "expired", "expired at {at}; it can't be answered any more"),
    "question_withdrawn": Fate("withdrawn", "withdrawn", "was withdrawn at {at}; it is not asked any more"),
}


def fate_of(entry: AuditEntry) -> Fate | None:
    """What became of the question that a line of the audit trail is about; None if the line does not say."""
    if entry.event in _FATES:
        return _FATES[entry.event]
    return None


def refusal_after(interrupt_id: str, entry: AuditEntry, fate: Fate) -> AnswerRefused:
    """The refusal of an answer to a question whose fate a line of the audit trail tells."""
    responder = (entry.detail.get("answer") or {}).get("responder") or {}
    words = fate.words.format(who=responder.get("id") or "somebody", at=entry.at)
    return AnswerRefused(fate.code, f"{interrupt_id} {words}")
