"""How a session looks from outside, as plain JSON."""

from typing import Any, TypeVar

from countersign.agent_core.json_values import JsonObject, canonical_json, json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.session.machine import Session
from countersign.agent_core.wire import StoredSegment, timestamp

T = TypeVar("T")

PAGE_BYTES = 500_000
MOST_BYTES = 3 * PAGE_BYTES
"""What a query's answer may weigh in any case: Temporal takes 2 MB."""
CARDS_BYTES = 8_000
_SHOWN_CHARS = 300
_SHOWN_DETAILS = 10


def public_status(session: Session) -> str:
    """One word: "running", "waiting", "idle" or "closed"."""
    state = session.state
    if state.status == "closed":
        return "closed"
    if session.busy:
        return "running"
    if state.status == "waiting":
        return "waiting"
    return "idle"


def status(session: Session) -> JsonObject:
    """What a session does now."""
    state, deadline = session.state, session.next_deadline()
    return {
        "session_id": state.session_id,
        "agent": state.agent,
        "status": public_status(session),
        "since": state.since,
        "turn": state.turn,
        "cycle": state.cycle,
        "lifetime": state.options.lifetime,
        "open_questions": len(session.open_questions()),
        "next_deadline": timestamp(deadline) if deadline else None,
        "queued_prompts": len(state.prompts),
        "stop_reason": state.last.stop_reason if state.last else None,
        "error": state.last.error.model_dump() if state.last and state.last.error else None,
    }


def questions(session: Session, *, every: bool = False) -> list[JsonObject]:
    """The open questions, or all of the pending batch."""
    pending = session.state.pending
    found = pending.questions if pending and every else session.open_questions()
    return [question.model_dump(mode="json") for question in found]


def transcript(session: Session, start: int) -> JsonObject:
    """A page of the conversation from message `start` on: `{"messages", "start", "next", "total"}`.

    A message keeps its number when earlier ones are cut. If `start` is one of those, the page begins with the first
    that is there; `"start"` says with which. If that message is in external storage, the page holds no messages but
    `"stored"`: a `StoredSegment` and, as `"start"`, the number of its first message.
    """
    first = session.state.gone
    total, start = first + session.state.message_count(), max(first, start)
    here: list[Message] = []
    for piece in session.state.pieces():
        following = first + (piece.messages if isinstance(piece, StoredSegment) else len(piece))
        if following > start:
            if not isinstance(piece, StoredSegment):
                here.extend(piece[max(0, start - first) :])
            elif here:
                break
            else:
                stored = {"start": first, **piece.model_dump(mode="json")}
                return _numbered([], start, following, total) | {"stored": stored}
        first = following
    page = _page(here)
    return _numbered(page, start, start + len(page), total)


def _numbered(page: list[Message], start: int, following: int, total: int) -> JsonObject:
    return {"messages": page, "start": start, "next": following if following < total else None, "total": total}


def _page(items: list[T]) -> list[T]:
    """The first messages or lines, at most a page full; one at least."""
    size = 0
    for count, item in enumerate(items):
        size += json_size(item)
        if count and size > PAGE_BYTES:
            return items[:count]
    return items


def audit(session: Session, start: int | None = None) -> list[JsonObject]:
    """The audit trail, oldest first.

    Args:
        session: The session.
        start: None for all lines, large ones shortened if they must be; else a page of whole lines, one at least,
            from this one on (0 is the oldest that is kept).
    """
    lines = [entry.model_dump(mode="json") for entry in session.state.audit]
    if start is not None:
        return _page(lines[max(0, start) :])
    sizes = [json_size(line) for line in lines]
    total = sum(sizes)
    for place in sorted(range(len(lines)), key=lambda place: sizes[place], reverse=True):
        if total <= PAGE_BYTES:
            break
        lines[place] = _shortened(lines[place])
        total, sizes[place] = total - sizes[place], json_size(lines[place])
        total += sizes[place]
    first = 0
    while total > MOST_BYTES:
        total, first = total - sizes[first], first + 1
    return lines[first:]


def _shortened(line: JsonObject) -> JsonObject:
    """An audit line with its first details only, the large ones as the beginning of their text."""
    detail = {key[:_SHOWN_CHARS]: _bounded(value) for key, value in [*line["detail"].items()][:_SHOWN_DETAILS]}
    return {**line, "detail": {**detail, "shortened": True}}


def _bounded(value: Any) -> Any:
    if json_size(value) <= _SHOWN_CHARS:
        return value
    if isinstance(value, dict):  # an answer: its shape stays
        return {
            key[:_SHOWN_CHARS]: part if json_size(part) <= _SHOWN_CHARS else _short(part)
            for key, part in [*value.items()][:_SHOWN_DETAILS]
        }
    return _short(value)


def cards(session: Session) -> list[JsonObject]:
    """Compact question cards for the memo; what does not fit is cut, and cards past the limit are left out."""
    found: list[JsonObject] = []
    for question in session.open_questions():
        card = {
            "id": question.id,
            "name": question.name[:_SHOWN_CHARS],
            "calls": [{"tool": call.tool, "input": _short(call.input)} for call in question.calls[:5]],
            "reason": _short(question.reason),
            "digest": question.digest,
            "answers": question.answers if json_size(question.answers) <= _SHOWN_CHARS else {},
            "asked_at": question.asked_at,
            "deadline": question.deadline,
        }
        if json_size([*found, card]) > CARDS_BYTES:
            break
        found.append(card)
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
