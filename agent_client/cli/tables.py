"""Tables of sessions and of questions; ids are never cut, colours vanish in pipes and with NO_COLOR."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_client.cli.cards import card_calls
from countersign.agent_client.cli.terminal import has_colours, rich_style, styled
from countersign.agent_client.moments import distance
from countersign.agent_core.moments import moment_of
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from countersign.agent_client.listing import SessionSummary

_IDS, _WHOLE_CHARS = ("session", "id"), 40

Cell = tuple[str, str]
"""A text, and its style's name or ""."""

_WIDE_CHARS = 1_000
"""Into a pipe, a row stays on one line."""


def print_table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """A table on standard output."""
    console().print(table(titles, rows))


def print_stacked(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """The same as lines below each other, where a table would break its words."""
    width = max(map(len, titles))
    for row in rows:
        first, *rest = zip(titles, row, strict=True)
        print(styled(visible(first[1][0]), "bold"))
        for title, (text, style) in rest:
            print(f"  {title:<{width}}  {styled(visible(text), style) if style else visible(text)}")


def console() -> "Console":
    """Standard output as rich draws on it: no markup, and no styles where there should be none."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDE_CHARS
    colours: Literal["auto"] | None = "auto" if has_colours() else None
    return Console(markup=False, highlight=False, emoji=False, width=width, color_system=colours)


def table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> "Table":
    """A table as rich draws it; whatever its cells hold is shown as text."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for place, title in enumerate(titles):
        longest = max((len(visible(row[place][0])) for row in rows), default=0)
        # An id on one line can be copied; one that would take half of the terminal is folded, never cut.
        drawn.add_column(title, overflow="fold", no_wrap=title in _IDS and longest <= _WHOLE_CHARS)
    for row in rows:
        drawn.add_row(*(Text(visible(text), style=rich_style(style)) for text, style in row))
    return drawn


SESSION_TITLES = ("session", "agent", "status", "open questions", "started", "ended")


def session_row(session: "SessionSummary", now: datetime) -> list[Cell]:
    """A session as a row."""
    names = questions_in_short(session)
    return [
        (session.session_id, ""),
        (session.agent or "?", ""),
        (session.status, session.status),
        (f"{session.open_questions}: {names}" if names else "", ""),
        (distance(session.started_at, now), "dim"),
        (distance(session.ended_at, now) if session.ended_at else "", "dim"),
    ]


def questions_in_short(session: "SessionSummary") -> str:
    """The names of a session's questions; why they can't be read, if so; "" if there are none."""
    if session.unreadable and not session.ended:
        from countersign.agent_client.unreadable import in_short

        return f"unreadable, {in_short(session.unreadable)}"
    return ", ".join(str(card.get("name")) for card in session.questions)


def say_what_is_unreadable(sessions: "Iterable[SessionSummary]") -> None:
    """On standard error, each reason why some can't be read here, once."""
    for reason in dict.fromkeys(session.unreadable for session in sessions if session.unreadable):
        print(visible(f"not all can be read here: {reason}"), file=sys.stderr)


QUESTION_TITLES = ("session", "question", "would run", "asked", "deadline", "id")


def question_rows(session: "SessionSummary", now: datetime) -> list[list[Cell]]:
    """A session's open questions as rows; one row if they can't be read."""
    if session.unreadable:
        return [[(session.session_id, ""), (questions_in_short(session), "waiting"), *[("", "")] * 4]]
    return [
        [
            (session.session_id, ""),
            (str(card.get("name") or ""), "waiting"),
            (card_calls(card), ""),
            (_when(card.get("asked_at"), now), "dim"),
            (_when(card.get("deadline"), now), "dim"),
            (str(card.get("id") or ""), "dim"),
        ]
        for card in session.questions
    ]


def _when(at: Any, now: datetime) -> str:
    when = moment_of(at)
    return distance(when, now) if when else str(at or "")
