"""Text from outside on a terminal: nothing that a model or a stranger wrote may steer or fake it.

Whatever is not a plain visible character is shown as its escape: control characters, ESC, bidi
marks, zero-width and other invisible ones. Lines of foreign text stand behind a bar, so that none
can look like a line of this command.
"""

import json
import os
import shlex
import sys
import unicodedata
from typing import Any

BAR = "│ "

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
"""Letters and marks that show as nothing, whatever their category says."""


def visible(text: str) -> str:
    """The text on one line, with everything that can't be seen as a \\u escape."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    blank = unicodedata.category(character) == "Zs" and character != " "
    if not blank and unicodedata.category(character) not in _HIDDEN_CATEGORIES and character not in _BLANK_LETTERS:
        return character
    return json.dumps(character)[1:-1] if ord(character) > 0x7F else f"\\u{ord(character):04x}"


def visible_lines(text: str, indent: str = "  ") -> str:
    """Text of several lines, each behind a bar."""
    return "\n".join(f"{indent}{BAR}{visible(line)}" for line in text.split("\n"))


def visible_json(value: Any, indent: str = "  ") -> str:
    """A JSON value over several lines, each behind a bar; types can be told apart."""
    return visible_lines(json.dumps(value, indent=2, ensure_ascii=False), indent)


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


def command(*words: str) -> str:
    """A `countersign` command that can be pasted into a shell; the words come out as they went in, if visible."""
    return " ".join(["countersign", *(shlex.quote(visible(word)) for word in words)])


def print_json_line(value: Any) -> None:
    """A JSON value on one line of standard output, at once: for streams of them (JSON Lines)."""
    print(json.dumps(value, ensure_ascii=True), flush=True)


def print_json(value: Any) -> None:
    """A JSON value for programs, on standard output: pure ASCII, so that it can't steer a terminal either."""
    print(json.dumps(value, indent=2, ensure_ascii=True))
