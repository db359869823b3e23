"""Answers held against the questions of a pending batch: which may be taken, and what taking one changes."""

from datetime import datetime
from typing import TypeAlias

from countersign.agent_core.answers import ParsedAnswer
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.interrupts import refused
from countersign.agent_core.json_values import JsonObject, canonical_json
from countersign.agent_core.void_approvals import why_void
from countersign.agent_core.wire import Answer, AuditEvent, Pending, Question, timestamp

Note: TypeAlias = tuple[AuditEvent, JsonObject]
"""A line for the audit trail: the event, and its detail."""


def open_questions(pending: Pending | None) -> list[Question]:
    """The questions that wait for an answer."""
    return [question for question in pending.questions if question.status == "open"] if pending else []


def question_for(pending: Pending | None, answer: ParsedAnswer, now: datetime) -> Question:
    """The question that an answer is for, if it may be taken, or is its very answer already.

    Args:
        pending: The batch whose questions are asked; None if none is.
        answer: What came in.
        now: The present moment; held against the deadline.

    Raises:
        AnswerRefused: If it may not be taken, with what to do.
    """
    question = next((q for q in pending.questions if q.id == answer.interrupt_id), None) if pending else None
    if question is None:
        raise _unknown(pending, answer)
    if question.status in ("answered", "settled") and question.answer is not None:
        if canonical_json(question.answer.response) == canonical_json(answer.response):
            return question
        who = (question.answer.responder or {}).get("id") or "somebody"
        raise AnswerRefused("already_answered", f"{question.id} was already answered by {who} at {question.answer.at}")
    overdue = question.deadline is not None and datetime.fromisoformat(question.deadline) <= now
    if question.status == "expired" or (question.status == "open" and overdue):
        raise AnswerRefused("expired", f"{question.id} expired at {question.deadline}; it can't be answered any more")
    if question.status != "open":
        raise AnswerRefused("withdrawn", f"{question.id} is not asked any more ({question.status})")
    if answer.digest is not None and answer.digest != question.digest:
        raise AnswerRefused(
            "outdated", f"{question.id} has the digest {question.digest}, not {answer.digest}; look again"
        )
    return question


def _unknown(pending: Pending | None, answer: ParsedAnswer) -> AnswerRefused:
    ids = ", ".join(question.id for question in open_questions(pending))
    if not ids:
        return AnswerRefused(
            "not_interrupted", f"{answer.interrupt_id!r} can't be answered: the session asks nothing now"
        )
    return AnswerRefused("unknown_interrupt", f"no question has the id {answer.interrupt_id!r}; open are: {ids}")


def record(question: Question, answer: ParsedAnswer, now: datetime, channel: str) -> Answer | None:
    """Give a question its answer; the first one wins.

    Returns:
        The answer as recorded, or None if the question had this one already.
    """
    if question.status != "open":
        return None
    question.status = "answered"
    # Nobody can have said it before it was asked: a clock that is far behind must not void every approval.
    said = max(datetime.fromisoformat(answer.at), datetime.fromisoformat(question.asked_at)) if answer.at else now
    question.answer = Answer(
        response=answer.response,
        responder=answer.responder,
        comment=answer.comment,
        at=timestamp(now),
        said_at=timestamp(said) if said < now else None,
        channel=channel,
    )
    return question.answer


def merge(known: Pending | None, left: Pending | None, since: str) -> list[Note]:
    """Give a batch as a cycle left it the answers that came while the cycle ran.

    Args:
        known: The batch as the session has it, with those answers.
        left: As the cycle left it; changed in place. None if it is done.
        since: When the cycle began.

    Returns:
        Lines for the audit trail, about those that count no more.
    """
    notes: list[Note] = []
    theirs = {question.id: question for question in left.questions} if left else {}
    for mine in known.questions if known else []:
        if left is None:
            if mine.answer is not None and mine.answer.at > since:  # both as timestamps
                notes.append(_unused(mine))
            continue
        question = theirs.get(mine.id)
        if question is None or question.answer is not None:
            continue
        if question.status == "open" and mine.status in ("answered", "expired"):
            question.status, question.answer = mine.status, mine.answer
        elif question.status != "open" and mine.status == "answered":
            notes += _answered_again(mine, question, left)
    return notes


def _answered_again(mine: Question, question: Question, left: Pending) -> list[Note]:
    """What an answer is worth whose question was not asked any more when it came: a no still is one (rule 5)."""
    place = (question.scope, question.index, question.name)
    again = next((q for q in left.questions if q.status == "open" and (q.scope, q.index, q.name) == place), None)
    if refused(mine) and question.index not in left.results:
        question.status, question.answer = "answered", mine.answer  # see `Ledger.standing`
        return []
    void = why_void(mine, again.reason, again.digest, lapsed=False) if again else None
    if again is None or void is None:
        return [_unused(mine)]
    again.fault = again.fault or void
    tools = ", ".join(dict.fromkeys(call.tool for call in again.calls))
    return [("approval_void", {"tool": tools, "questions": [again.name], "why": void})]


def _unused(question: Question) -> Note:
    """The line about an answer that changed nothing: the call was decided, or is asked about anew."""
    return "answer_unused", {"question": question.id, "name": question.name}
