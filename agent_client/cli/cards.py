"""Questions and sessions as a person reads them in a shell."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.terminal import command, shortened, visible, visible_json, visible_lines

if TYPE_CHECKING:
    from countersign.agent_client.waiting import WaitingSession
    from countersign.agent_core.wire import AnswerReceipt, Question

_WIDE_CHARS = 1_000
"""Into a pipe, a question stays on one line."""

DIGEST_SHOWN = 16
"""Hex digits of a digest that are shown and, pasted back, are enough to name it."""


def question_card(session_id: str, question: "Question", now: datetime) -> str:
    """Everything about one question: what will run, why, since when, until when, how to answer."""
    lines = [f"{visible(question.name)}  ({visible(question.id)})"]
    for call in question.calls:
        lines += [f"  will run {visible(call.tool)} with", visible_json(call.input, "    ")]
    if not question.calls:
        lines.append("  about no single call")
    if question.reason is not None:
        lines.append("  reason")
        text = question.reason
        lines.append(visible_lines(text, "    ") if isinstance(text, str) else visible_json(text, "    "))
    lines.append(f"  asked    {moment(question.asked_at, now)}")
    lines.append(f"  deadline {moment(question.deadline, now) if question.deadline else 'none'}")
    lines.append(f"  digest   {visible(question.digest[:DIGEST_SHOWN])}")
    if question.votes:
        lines.append(f"  votes    {len(question.votes)}")
    return "\n".join([*lines, *_ways_to_answer(session_id, question)])


def _ways_to_answer(session_id: str, question: "Question") -> list[str]:
    bound = ["--digest", question.digest[:DIGEST_SHOWN]]
    lines = ["  answer with"]
    for verdict in ("approve", "deny"):
        if verdict in question.answers:
            lines.append(f"    {command(verdict, session_id, question.id, *bound)}")
    lines.append(f"    {command('respond', session_id, question.id)} VALUE")
    return lines


def moment(at: str | None, now: datetime) -> str:
    """A wire timestamp with its distance: "2026-01-02 03:04:05 UTC (3 h ago)"."""
    try:
        when = datetime.fromisoformat(at or "")
    except ValueError:
        return visible(at or "unknown")
    if when.tzinfo is None:
        return visible(at or "unknown")
    seconds = (when - now).total_seconds()
    distance = f"in {_span(seconds)}" if seconds > 0 else f"{_span(-seconds)} ago"
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({distance})"


def _span(seconds: float) -> str:
    for size_s, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def print_waiting(sessions: Sequence["WaitingSession"], now: datetime) -> None:
    """A table of what waits, a line for each question; ids are never cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for title in ("session", "interrupt", "question", "would run", "asked"):
        table.add_column(title, overflow="fold", no_wrap=False)
    for session in sessions:
        for card in session.questions:
            asked = moment(str(card.get("asked_at") or ""), now)
            cells = (session.session_id, card.get("id"), card.get("name"), card_tools(card), asked)
            table.add_row(*(Text(visible(str(cell or ""))) for cell in cells))
    width = None if sys.stdout.isatty() else _WIDE_CHARS
    Console(markup=False, highlight=False, emoji=False, width=width).print(table)


def card_tools(card: dict[str, Any]) -> str:
    """The tools that a memo's card names, with the number of calls of each."""
    calls = card.get("calls")
    names = [str(call.get("tool", "?")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return shortened(", ".join(f"{name} ×{names.count(name)}" for name in dict.fromkeys(names)), 60)


def receipt_text(session_id: str, receipt: "AnswerReceipt") -> str:
    """What was taken and what still waits."""
    lines = [
        f"{'recorded before' if item.status == 'already_recorded' else 'accepted'}: "
        f"{visible(item.name)} ({visible(item.id)})"
        for item in receipt.accepted
    ]
    if receipt.open:
        count = f"{len(receipt.open)} question{'s' if len(receipt.open) > 1 else ''}"
        lines.append(f"{count} still open; see: {command('interrupts', session_id)}")
    return "\n".join(lines)
