"""Where a conversation may be cut. Pure: lists of messages in, lists of messages out.

A call and its results are never parted. What is kept begins with a prompt of the user if it began with one
before, and the running turn keeps its prompt and its last exchange, however small the window: a model that
does not know what it has just done would do it again.
"""

from collections.abc import Sequence
from typing import Any

from countersign.agent_core.messages import Message, is_guidance, tool_uses, user_message

_SUMMARY_KEY = "summary_of"


def summary_message(text: str, count: int) -> Message:
    """The message that stands for `count` messages which are gone."""
    message = user_message(text)
    message["metadata"] = {"custom": {_SUMMARY_KEY: count}}
    return message


def is_summary(message: Message) -> bool:
    """True for what `summary_message` made."""
    custom: Any = (message.get("metadata") or {}).get("custom")
    return isinstance(custom, dict) and _SUMMARY_KEY in custom


def stands_for(message: Message) -> int:
    """How many messages of the conversation as it was a message is, or stands for."""
    if not is_summary(message):
        return 1
    count = message["metadata"]["custom"][_SUMMARY_KEY]
    return count if isinstance(count, int) else 1


def has_results(message: Message) -> bool:
    """True for a message that answers calls."""
    return any("toolResult" in block for block in message["content"])


def is_prompt(message: Message) -> bool:
    """True for what a user said; not for guidance, with which a turn does not begin."""
    own = is_summary(message) or is_guidance(message)
    return message["role"] == "user" and not has_results(message) and not own


def whole(messages: Sequence[Message], place: int) -> int:
    """The first place from `place` on that is not between calls and their results."""
    while place < len(messages) and has_results(messages[place]):
        place += 1
    return place


def task(messages: Sequence[Message]) -> tuple[int, int]:
    """Where the last turn's prompt stands: its first place and the place after it; they are equal if there is none."""
    end = next((place + 1 for place in range(len(messages) - 1, -1, -1) if is_prompt(messages[place])), 0)
    start = end
    while start > 0 and is_prompt(messages[start - 1]):
        start -= 1
    return start, end


def latest(messages: Sequence[Message], most: int, pinned: int = 0) -> list[Message]:
    """The latest messages, as few as may be and at most `most` of them if that is possible.

    Args:
        messages: A valid conversation.
        most: How many messages; 0 keeps nothing of a turn that has ended.
        pinned: How many messages at the start stay, beside their results.
    """
    if len(messages) <= most:
        return list(messages)
    head = whole(messages, min(pinned, len(messages)))
    ended = messages[-1]["role"] == "assistant" and not tool_uses(messages[-1])
    if most == 0 and ended:
        return list(messages[:head])
    return [*messages[:head], *_tail(messages[head:], max(0, most - head))]


def _tail(messages: Sequence[Message], room: int) -> list[Message]:
    if len(messages) <= room or not messages:
        return list(messages)
    start, end = task(messages)
    opening = _first_opening(messages, len(messages) - room)
    if opening is not None:
        return list(messages[opening:])
    # The last turn alone is longer than there is room for: its prompt stays, and its latest exchanges.
    last = next((p for p in range(len(messages) - 1, end - 1, -1) if messages[p]["role"] == "assistant"), end - 1)
    exchanges = [place for place in range(end, last + 1) if not has_results(messages[place])]  # guidance begins one
    first = len(messages) - max(0, room - (end - start))
    kept = next((place for place in exchanges if place >= first), exchanges[-1] if exchanges else end)
    surplus = (end - start) + (len(messages) - kept) - room
    start = max(start, min(start + surplus, end - 1))  # prompts in a row: of a turn that failed
    return [*messages[start:end], *messages[kept:]]


def _first_opening(messages: Sequence[Message], first: int) -> int | None:
    """The first place from `first` on where a turn begins."""
    for place in range(first, len(messages)):
        if is_prompt(messages[place]) and not (place and is_prompt(messages[place - 1])):
            return place
    return None


def oldest_part(messages: Sequence[Message], share: float, keep: int, pinned: int = 0) -> tuple[int, list[int]]:
    """The part of a conversation to be summarised: the oldest, without what is pinned and the last turn's prompt.

    Args:
        messages: A valid conversation.
        share: How much of what is not pinned, 0 to 1.
        keep: How many of the latest messages stay in any case.
        pinned: How many messages at the start stay.

    Returns:
        The place where the part begins, and the places of its messages; none if there is nothing to take.
    """
    head = whole(messages, min(pinned, len(messages)))
    wanted = head + max(1, int((len(messages) - head) * share))
    end = whole(messages, min(wanted, len(messages) - keep)) if len(messages) - keep > head else head
    if end >= len(messages):
        return head, []
    start, after = task(messages)
    part = [place for place in range(head, end) if not start <= place < after]
    return head, part or [place for place in range(head, end) if place != after - 1]
