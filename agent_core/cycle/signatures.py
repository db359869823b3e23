"""What answers are worth for a call as it stands: covered or not, denied, and what the model is told of them. Pure."""

from collections.abc import Callable
from typing import Any

from countersign.agent_core.errors import ToolInputError
from countersign.agent_core.interrupts import call_digest, is_denial, is_refusal, question_digest, refused
from countersign.agent_core.json_values import JsonObject, canonical_json, digest
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.wire import GivenAnswer, Question, ShownCall


def as_it_would_run(tool: Tool | None, given: Any) -> Any:
    """An input as it would run: validated, with defaults filled in. Policy judges that, and not what the model wrote.

    An input that does not fit stays as it is: such a call is refused whatever policy says.
    """
    if tool is None:
        return given
    try:
        return tool.canonical_input(given)
    except ToolInputError:
        return given


def denied(question: Question) -> bool:
    """True if an answer that was taken says no in the question's own word, or in any, if nothing judged it."""
    if question.answer is None:
        return False
    response, answers = question.answer.response, question.answers
    return is_denial(response, answers) or (
        question.verdict is None and "deny" in answers and is_refusal(response, answers)
    )


def signed(question: Question, shown: ShownCall) -> bool:
    """True if an approval covers this very call: as it was shown, or as the approver edited it."""
    if question.edited is not None:
        tool = question.edited_tool or next((call.tool for call in question.calls), "")
        return call_digest(tool, question.edited) == call_digest(shown.tool, shown.input)
    return question.digest == question_digest(question.name, question.reason, [shown])


def answers_for_the_tool(
    questions: list[Question], shown: ShownCall, lapsed: Callable[[Question], bool]
) -> dict[str, GivenAnswer]:
    """Answers for the tool's body, as far as they hold for exactly this call."""
    found: dict[str, GivenAnswer] = {}
    for question in questions:
        if question.scope != "tool" or question.status != "answered" or question.answer is None:
            continue
        same = question.digest == question_digest(question.name, question.reason, [shown])
        if (same and not lapsed(question)) or refused(question):
            reason = digest(question.reason)
            found[question.name] = GivenAnswer(response=question.answer.response, reason_digest=reason)
    return found


def words_for_the_model(questions: list[Question], edited: JsonObject | None) -> str | None:
    """What people said while they approved, and what they changed; None if nothing."""
    reasons = [
        q.answer.response["reason"]
        for q in questions
        if q.status == "answered" and q.answer and isinstance(q.answer.response, dict)
        and isinstance(q.answer.response.get("reason"), str)
    ]  # fmt: skip
    change = "A person changed the input of this call before it ran"
    lines = [f"{change}: {canonical_json(edited)}"] if edited is not None else []
    return "\n".join([*lines, *(f"A person said: {reason}" for reason in reasons)]) or None


def approved_by(questions: list[Question]) -> list[dict[str, Any]]:
    """Who approved, for the audit."""
    return [
        {"question": q.id, "response": q.answer.response, "responder": q.answer.responder, "at": q.answer.at}
        for q in questions
        if q.status == "answered" and q.answer is not None
    ]
