"""The lines of a session's audit trail in plain words: what happened, to which call, and who said so."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.terminal import rows, shortened, styled
from countersign.agent_core.moments import moment_of
from countersign.agent_core.visible import DIGEST_DIGITS, visible

if TYPE_CHECKING:
    from countersign.agent_core.wire import AuditEntry, AuditEvent

Detail = dict[str, Any]

_TEXT_CHARS = 200


def audit_line(entry: "AuditEntry", width: int | None = None) -> str:
    """One line: when, in which cycle, what.

    Args:
        entry: What the trail says.
        width: Columns of the terminal; None for a line of any length.
    """
    when = moment_of(entry.at)
    at = f"{when:%Y-%m-%d %H:%M:%S}" if when else visible(entry.at)
    cycle = f" cycle {entry.cycle}" if entry.cycle is not None else ""
    text = _WORDS[entry.event](entry.detail) if entry.event in _WORDS else _other(entry.event, entry.detail)
    line = rows(f"  {at}{cycle} {visible(shortened(text, 2 * _TEXT_CHARS))}", width)
    return line.replace(at + cycle, styled(at + cycle, "dim"), 1)


def answer_words(answer: Detail) -> str:
    """Who gave an answer, and which: 'ann answered "y" ("checked")'."""
    said = f"{responder_name(answer)} answered {_value(answer.get('response'))}"
    return f"{said}, comment {_value(answer['comment'])}" if answer.get("comment") else said


def responder_name(answer: Detail) -> str:
    """Who answered, as far as somebody claims it."""
    responder = answer.get("responder")
    return str(responder.get("id")) if isinstance(responder, dict) and responder.get("id") else "somebody"


def _value(value: Any) -> str:
    return shortened(json.dumps(value, ensure_ascii=False), _TEXT_CHARS)


def _answered(detail: Detail) -> str:
    answer = detail.get("answer") or {}
    channel = f" by {answer['channel']}" if answer.get("channel") else ""
    return f"{answer_words(answer)} to {_question(detail)}{channel}"


def _question(detail: Detail) -> str:
    return f"{detail.get('name', 'question')} ({detail.get('question')})"


def _asked(detail: Detail) -> str:
    calls = [call for call in detail.get("calls") or [] if isinstance(call, dict)]
    about = ", ".join(f"{call.get('tool')} {_value(call.get('input'))}" for call in calls)
    return f"asked {_question(detail)}" + (f" about {about}" if about else "")


def _started(detail: Detail) -> str:
    approvals = [item for item in detail.get("approved_by") or [] if isinstance(item, dict)]
    named = ", ".join(f"{responder_name(item)} ({item.get('question') or 'inline'})" for item in approvals)
    given = f" with {_value(detail['input'])}" if "input" in detail else ""
    return f"{detail.get('tool')} started{given}" + (f", approved by {named}" if named else "")


def _ended(detail: Detail) -> str:
    if detail.get("not_run"):
        return f"{detail.get('tool')} never started: {detail.get('detail')}"
    more = f": {detail['detail']}" if detail.get("detail") else ""
    return f"{detail.get('tool')} ended ({detail.get('status') or detail.get('outcome')}){more}"


def _refused(what: str, detail: Detail) -> str:
    """Who refused calls, and in which words; lines of before that was noted say only that."""
    by = detail.get("who") or {"person": "a person"}.get(str(detail.get("by")), detail.get("by"))
    return f"{what} refused" + (f" by {by}" if by else "") + (f": {detail['text']}" if detail.get("text") else "")


def _reduced(detail: Detail) -> str:
    """What went from the conversation, why, and what is left of it."""
    removed, left = detail.get("removed") or 0, detail.get("left")
    parts = [f"{removed} message{'' if removed == 1 else 's'} {'summed up' if detail.get('summarised') else 'cut'}"]
    if detail.get("shortened_results"):
        parts = [*(parts if removed else []), f"long results shortened: {detail['shortened_results']}"]
    failed = f" (no summary: {detail['summary_failed']})" if detail.get("summary_failed") else ""
    return (
        f"conversation reduced: {', '.join(parts)}, {left} left{failed} ({detail.get('manager')}, {detail.get('why')})"
    )


def _error(detail: Detail) -> str:
    error = detail.get("error") or {}
    return f": {error.get('type')}: {error.get('message')}" if error else ""


def _other(event: str, detail: Detail) -> str:
    """An event that this version does not know, or that needs no words of its own."""
    parts = [f"{name} {_short(name, value)}" for name, value in detail.items() if value is not None]
    return event.replace("_", " ") + (f": {', '.join(parts)}" if parts else "")


def _short(name: str, value: Any) -> str:
    if name == "digest" and isinstance(value, str):
        return value[:DIGEST_DIGITS]
    return value if isinstance(value, str) else _value(value)


_WORDS: "dict[AuditEvent, Callable[[Detail], str]]" = {
    "prompt_queued": lambda detail: "prompt taken",
    "question_asked": _asked,
    "answered": _answered,
    "refused": lambda detail: f"refused {detail.get('what')} ({detail.get('code')}): {detail.get('reason')}",
    "answer_unused": lambda detail: f"the answer to {_question(detail)} changed nothing: it came too late",
    "expired": lambda detail: f"nobody answered {_question(detail)} in time",
    "question_withdrawn": lambda detail: f"withdrew {_question(detail)}",
    "approval_void": lambda detail: (
        f"approval of {detail.get('tool')} is void: {detail.get('why') or 'it is not what was shown'}"
    ),
    "batch_cancelled": lambda detail: _refused("all calls", detail),
    "call_refused": lambda detail: _refused(str(detail.get("tool")), detail),
    "call_expired": lambda detail: f"{detail.get('tool')} did not run: its question expired",
    "tool_started": _started,
    "tool_ended": _ended,
    "unknown_outcome_resolved": lambda detail: (
        f"unknown outcome of {detail.get('tool')} resolved with {_value(detail.get('response'))}"
    ),
    "cycle_failed": lambda detail: f"cycle failed as a workflow: {detail.get('reason')}",
    "conversation_reduced": _reduced,
    "conversation_restored": lambda detail: f"conversation put back as it was: {detail.get('left')} messages",
    "stop": lambda detail: f"stop ({detail.get('reason')})",
    "close": lambda detail: "close",
    "turn_failed": lambda detail: f"turn failed{_error(detail)}",
    "turn_ended": lambda detail: f"turn ended ({detail.get('stop_reason')}){_error(detail)}",
}
