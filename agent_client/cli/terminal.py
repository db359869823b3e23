"""Text from outside on a terminal: nothing that a model or a stranger wrote may steer or fake it.

Whatever can't be seen is shown as its escape (`agent_core.visible`). Lines of foreign text stand
behind a bar, so that none can look like a line of this command.
"""

import json
import os
import shutil
import sys
import textwrap
from typing import Any, TextIO

from countersign.agent_core.visible import visible

BAR = "│ "
CUT = "┆ "
"""Instead of the bar, where a line was cut because the terminal is narrow."""


def visible_lines(text: str, indent: str = "  ", width: int | None = None, *, prose: bool = False) -> str:
    """Text of several lines, each behind a bar: no part of it can begin a line.

    Args:
        text: Foreign text.
        indent: Blanks before the bar.
        width: Columns of the terminal, to cut longer lines; None for lines of any length.
        prose: Cut between words, which may lose a blank; else nothing is lost, and cuts are marked.
    """
    lines = [visible(line) for line in text.split("\n")]
    if width is None:
        return "\n".join(f"{indent}{BAR}{line}" for line in lines)
    from rich.cells import chop_cells

    room = max(width - len(indent) - len(BAR), 10)
    if prose:
        lines = [row for line in lines for row in textwrap.wrap(line, room) or [""]]
    shown = []
    for line in lines:
        first, *rest = chop_cells(line, room) or [""]
        shown += [f"{indent}{BAR}{first}", *(f"{indent}{CUT}{piece}" for piece in rest)]
    return "\n".join(shown)


def rows(line: str, width: int | None) -> str:
    """A line of ours over as many rows as it needs: no foreign text in it can begin one.

    Args:
        line: The line; foreign text in it must have been made visible.
        width: Columns of the terminal, to mark where the rest goes on; None for a line of any length.
    """
    if width is None:
        return line
    from rich.cells import chop_cells

    first, *rest = chop_cells(line, width) or [""]
    left = "".join(rest)
    return "\n".join([first, *(f"  {CUT}{piece}" for piece in chop_cells(left, max(width - 4, 10)) if left)])


def visible_json(value: Any, indent: str = "  ", width: int | None = None) -> str:
    """A JSON value over several lines, each behind a bar; types can be told apart."""
    return visible_lines(json.dumps(value, indent=2, ensure_ascii=False), indent, width)


def columns(out: TextIO | None = None) -> int | None:
    """Columns of the terminal that a stream is, standard output if none is given; None if it is no terminal."""
    return shutil.get_terminal_size().columns if (out or sys.stdout).isatty() else None


def shortened(text: str, most_chars: int) -> str:
    """The text cut to a number of characters, with a mark where it was cut."""
    return text if len(text) <= most_chars else text[: most_chars - 1] + "…"


STYLES: dict[str, dict[str, Any]] = {
    "waiting": {"fg": "yellow", "bold": True},
    "running": {"fg": "cyan"},
    "closed": {"fg": "green"},
    "failed": {"fg": "red", "bold": True},
    "terminated": {"fg": "red"},
    "timed_out": {"fg": "red"},
    "canceled": {"fg": "magenta"},
    "idle": {},
    "dim": {"dim": True},
    "bold": {"bold": True},
}
"""How a status, or a part of a text, looks on a terminal; rich knows the same names."""


def styled(text: str, style: str) -> str:
    """Text in one of the `STYLES`, if standard output is a terminal with colours; else as it is."""
    if style not in STYLES or not has_colours():
        return text
    from typer import style as typer_style

    return typer_style(text, **STYLES[style])


def has_colours() -> bool:
    """True if standard output is a terminal that takes styles, and NO_COLOR does not forbid them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def rich_style(name: str) -> str:
    """One of the `STYLES` in rich's words; "" for what is none."""
    return " ".join(str(part) if key == "fg" else key for key, part in STYLES.get(name, {}).items())


def print_json_line(value: Any) -> None:
    """A JSON value on one line of standard output, at once: for streams of them (JSON Lines)."""
    print(json.dumps(value, ensure_ascii=True), flush=True)


def print_json(value: Any) -> None:
    """A JSON value for programs, on standard output: pure ASCII, so that it can't steer a terminal either."""
    print(json.dumps(value, indent=2, ensure_ascii=True))
