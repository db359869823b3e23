"""Text from outside in the Temporal UI's Markdown: shown as code, so that it can't act as Markdown.

The UI renders links, images from anywhere and some HTML, in summaries too. Whoever wrote a tool's
input, a reason or a session's id may be a model or a stranger. Such text stands in code blocks and
code spans, where nothing is rendered; summaries keep only characters that mean nothing in Markdown.
"""

import json
import re
from typing import Any

from countersign.agent_core.visible import visible

WRAP_CHARS = 52
"""The UI cuts off what is wider than its panel: 54 characters in a window of 1,280 pixels."""

SUMMARY_CHARS = 90
"""The server refuses summaries over 400 bytes; a character may take four."""

_CONTINUED = "↪ "


def code(text: str) -> str:
    """The text as a code span: it wraps, and nothing in it is rendered."""
    shown = visible(text)
    fence = "`" * (_longest_run(shown) + 1)
    # Spaces at the edges keep the text's own backticks apart from the fence, and are not shown.
    return (
        f"{fence} {shown} {fence}" if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else fence + shown + fence
    )


def code_block(text: str) -> list[str]:
    """Lines of a code block with the text; lines too wide for the UI go on behind an arrow."""
    lines = [piece for line in text.split("\n") for piece in _wrapped(visible(line))]
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return [fence, *lines, fence]


def pretty(value: Any) -> str:
    """A JSON value over several lines; a string stands as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def plain(text: str, most_chars: int = SUMMARY_CHARS) -> str:
    """Text for a summary: cut, and without the characters that can mark something up or make a link."""
    kept = "".join(
        character if character.isalnum() or character in " .,_-·×" else "·" for character in text[:most_chars]
    )
    return kept if len(text) <= most_chars else f"{kept}…"


def _wrapped(line: str) -> list[str]:
    first, rest = line[:WRAP_CHARS], line[WRAP_CHARS:]
    width = WRAP_CHARS - len(_CONTINUED)
    return [first, *(_CONTINUED + rest[at : at + width] for at in range(0, len(rest), width))]


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
