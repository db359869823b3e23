"""Answers held against the questions of a pending batch: which may be taken, and what taking one changes."""

from datetime import datetime

from countersign.agent_core.answers import ParsedAnswer
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.wire import Answer, Pending, Question, timestamp


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
    question.answer = Answer(
        response=answer.response,
        responder=answer.responder,
        comment=answer.comment,
        at=timestamp(now),
        channel=channel,
    )
    return question.answer
