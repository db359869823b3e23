"""Questions about a call of which nobody knows whether it ran: what may be said of it, and what answers do. Pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from countersign.agent_core.plain_answers import refuses

if TYPE_CHECKING:
    from countersign.agent_core.wire import Question

Known: TypeAlias = Literal["may have run", "has not run"]

UNKNOWN_OUTCOME_QUESTION, NOT_RUN_NOTE = "unknown-outcome", "Nobody has run the call."
"""The question's name, and the note in its reason if surely nobody has run the call."""

CALL_WORDS: Mapping[Known | None, str] = {
    None: "will run",
    "may have run": "may have run",
    "has not run": "nobody has run",
}
"""What is said before the tool of a question's call; None for a question that is no `unknown-outcome`."""

ANSWER_WORDS: Mapping[Known, Mapping[str, str]] = {
    "may have run": {
        "retry": "it did not run: run it",
        "skip": "don't run it; the model is told that it may have run",
        "record a result": "it did run, and this came of it",
    },
    "has not run": {
        "retry": "run it",
        "skip": "don't run it; the model is told that it has not run",
        "record a result": "it was done in another way, and this came of it",
    },
}
"""What each answer means, by the answer's name."""

RECORDED = '{"result": "..."}'
"""The answer that records a result, as JSON to fill in."""

OUTCOME_CHOICES = """"retry", "skip" or {"result": what it returned}"""
"""What a person may say of the call."""


def outcome_choice(response: Any) -> Literal["retry", "skip", "result"] | None:
    """What a person's answer means for the call; None if it means nothing."""
    if isinstance(response, dict) and "result" in response:
        return "result"
    if isinstance(response, str) and response.strip().lower() in ("retry", "skip"):
        return "retry" if response.strip().lower() == "retry" else "skip"
    return "skip" if refuses(response) else None


def known_of_question(question: "Question") -> Known | None:
    """What is known of the call that a question is about; None if the question is no `unknown-outcome`."""
    return known_of_call({"name": question.name, "answers": question.answers, "reason": question.reason})


def known_of_call(question: Mapping[str, Any]) -> Known | None:
    """What is known of the call that a question is about; None if the question is no `unknown-outcome`.

    Args:
        question: As plain JSON, or its card in a memo, whose reason is JSON that may be cut.
    """
    answers = question.get("answers")
    if question.get("name") != UNKNOWN_OUTCOME_QUESTION or not (isinstance(answers, dict) and "retry" in answers):
        return None
    reason = question.get("reason")
    if isinstance(reason, dict):
        return "has not run" if reason.get("note") == NOT_RUN_NOTE else "may have run"
    return "has not run" if f'"note":"{NOT_RUN_NOTE}"' in str(reason) else "may have run"


def tools_of(question: Mapping[str, Any]) -> list[str]:
    """The tools of the calls that a question is about.

    Args:
        question: As plain JSON, or its card in a memo.
    """
    calls = question.get("calls")
    return [str(call.get("tool")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
