"""Questions about a call of which nobody knows whether it ran: what may be said of that call. Pure."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Known: TypeAlias = Literal["may have run", "has not run"]

_NOT_RUN = "Nobody has run the call."
"""The note in the reason of a question about a call that surely nobody has run."""


def known_of_call(question: Mapping[str, Any]) -> Known | None:
    """What is known of the call that a question is about; None if the question is no `unknown-outcome`.

    Args:
        question: As plain JSON, or its card in a memo, whose reason is JSON that may be cut.
    """
    from countersign.agent_core.approvals import UNKNOWN_OUTCOME_QUESTION

    answers = question.get("answers")
    if question.get("name") != UNKNOWN_OUTCOME_QUESTION or not (isinstance(answers, dict) and "retry" in answers):
        return None
    reason = question.get("reason")
    if isinstance(reason, dict):
        return "has not run" if reason.get("note") == _NOT_RUN else "may have run"
    return "has not run" if f'"note":"{_NOT_RUN}"' in str(reason) else "may have run"


def tools_of(question: Mapping[str, Any]) -> list[str]:
    """The tools of the calls that a question is about.

    Args:
        question: As plain JSON, or its card in a memo.
    """
    calls = question.get("calls")
    return [str(call.get("tool")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
