"""Long tool results, with a note in place of their middle. Pure."""

from collections.abc import Sequence
from typing import Any

from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.messages import ContentBlock, Message

LONG_CHARS = 1_000
"""A text or JSON block of a result with more characters is long."""

END_CHARS = 200
"""What stays of it at either end."""

_BINARY = ("image", "document", "video", "audio")


def with_ends(text: str, long_chars: int, end_chars: int) -> str:
    """A long text with a note in place of its middle; any other one as it is."""
    if len(text) <= long_chars:
        return text
    gone = len(text) - 2 * end_chars
    return f"{text[:end_chars]}\n[… {gone:,} characters are left out here …]\n{text[-end_chars:]}"


def shorten_older_half(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """The conversation with the long results of its older half shortened.

    Half of the messages that hold long results, one at least: the latest results go last, and a few tries reach
    all of them.

    Returns:
        New messages where something has changed, and how many results were shortened; 0 if none is long.
    """
    places = [place for place, message in enumerate(messages) if _shortened(message)[1]]
    changed, count = list(messages), 0
    for place in places[: (len(places) + 1) // 2]:
        changed[place], results = _shortened(messages[place])
        count += results
    return changed, count


def _shortened(message: Message) -> tuple[Message, int]:
    content: list[ContentBlock] = []
    count = 0
    for block in message["content"]:
        result: Any = block.get("toolResult")
        if result is None:
            content.append(block)
            continue
        parts = [_short(part) for part in result["content"]]
        if parts == result["content"]:
            content.append(block)
        else:
            content.append({**block, "toolResult": {**result, "content": parts}})
            count += 1
    return ({**message, "content": content}, count) if count else (message, 0)


def _short(part: ContentBlock) -> ContentBlock:
    for kind in _BINARY:
        if kind in part:
            return {"text": f"[{binary_words(kind, part[kind])}, left out]"}
    text = part.get("text")
    if isinstance(text, str) and len(text) > LONG_CHARS:
        return {**part, "text": with_ends(text, LONG_CHARS, END_CHARS)}
    if "json" in part and len(written := canonical_json(part["json"])) > LONG_CHARS:
        return {"text": with_ends(written, LONG_CHARS, END_CHARS)}
    return part


def binary_words(kind: str, value: Any) -> str:
    """An image, document or the like in words."""
    named = value.get("format") if isinstance(value, dict) else None
    return f"{kind} ({named})" if named else kind
