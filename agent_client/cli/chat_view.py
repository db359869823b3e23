"""A conversation as a person reads it at the terminal. Text in, text out: nothing is printed here.

Whatever a model, a tool or a stranger wrote stands behind a bar, with nothing hidden.
"""

import json
import textwrap
from datetime import datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.terminal import BAR, shortened
from countersign.agent_client.moments import moment
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_core.json_values import JsonObject, JsonValue
    from countersign.agent_core.messages import Message
    from countersign.agent_core.wire import Question

CUT = "┆ "
"""Instead of the bar, where a line was cut because the terminal is narrow."""

_CALL_CHARS, _RESULT_CHARS, _TEXT_CHARS = 300, 500, 20_000
_KEYS = {"approve": "y", "deny": "n", "trust": "t"}
"""What is typed for the answers that most questions offer."""

_WORDS = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "t": "trust"}


class Transcript:
    """Turns messages into lines; remembers the names of calls for their results."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def texts(self, agent: str, message: "Message", width: int) -> list[str]:
        """A message's blocks, each as one text of one or more lines of so many columns."""
        who = agent if message["role"] == "assistant" else "user"
        return [self._block(who, block, width) for block in message["content"]]

    def _block(self, who: str, block: Any, width: int) -> str:
        if isinstance(block.get("text"), str):
            return f"{visible(who)}\n{barred(shortened(block['text'], _TEXT_CHARS), '  ', width, prose=True)}"
        if "toolUse" in block:
            use = block["toolUse"]
            self._tools[str(use.get("toolUseId"))] = name = str(use.get("name"))
            given = json.dumps(use.get("input"), ensure_ascii=False)
            return f"  calls {visible(shortened(f'{name} {given}', _CALL_CHARS))}"
        if "toolResult" in block:
            result = block["toolResult"]
            name = self._tools.get(str(result.get("toolUseId")), "a call")
            parts = [part["text"] if "text" in part else json.dumps(part) for part in result.get("content", [])]
            status = "returned" if result.get("status") == "success" else f"ended with {result.get('status')}"
            shown = barred(shortened("\n".join(map(str, parts)), _RESULT_CHARS), "    ", width)
            return f"  {visible(name)} {visible(status)}\n{shown}"
        return f"  {visible(', '.join(block))}"


def barred(text: str, indent: str, width: int, *, prose: bool = False) -> str:
    """Foreign text behind a bar, cut to the terminal's width: no part of it can begin a line.

    Args:
        text: The text.
        indent: Blanks before the bar.
        width: Columns of the terminal.
        prose: Cut between words, which may lose a blank; else nothing is lost, and cuts are marked.
    """
    from rich.cells import chop_cells

    room = max(width - len(indent) - len(BAR), 10)
    lines = [visible(line) for line in text.split("\n")]
    if prose:
        lines = [row for line in lines for row in textwrap.wrap(line, room) or [""]]
    shown = []
    for line in lines:
        first, *rest = chop_cells(line, room) or [""]
        shown += [f"{indent}{BAR}{first}", *(f"{indent}{CUT}{piece}" for piece in rest)]
    return "\n".join(shown)


def _barred_json(value: Any, width: int) -> str:
    return barred(json.dumps(value, indent=2, ensure_ascii=False), "    ", width)


def card(question: "Question", now: datetime, width: int) -> str:
    """A question inline: what will run, in full, why, and until when."""
    lines = [f"? {visible(question.name)}"]
    for call in question.calls:
        lines += [f"  will run {visible(call.tool)} with", _barred_json(call.input, width)]
    if not question.calls:
        lines.append("  about no single call")
    if question.reason is not None:
        reason = question.reason
        shown = barred(reason, "    ", width) if isinstance(reason, str) else _barred_json(reason, width)
        lines += ["  reason", shown]
    if question.deadline is not None:
        lines.append(f"  until {moment(question.deadline, now)}")
    return "\n".join(lines)


def offer(question: "Question") -> str:
    """What can be typed for a question, in one line."""
    known = {"approve": "approves", "deny": "denies", "trust": "approves this tool from now on"}
    keys = [f"{_KEYS[name]} {words}" for name, words in known.items() if name in question.answers]
    others = [_way(name, value) for name, value in question.answers.items() if name not in _KEYS]
    return ", ".join([*keys, *others, "other words are sent as the answer"])


def _way(name: str, value: "JsonValue") -> str:
    """How one of the question's further answers is typed: by its name, or, where it has parts to fill in, as JSON."""
    if not isinstance(value, (dict, list)):
        return visible(name)
    return visible(f"/json {json.dumps(value, ensure_ascii=False)} ({name})")


def meaning(question: "Question", typed: str) -> "tuple[JsonValue, str] | None":
    """The answer that a typed line means, and the verdict that it stands for ("" for plain words).

    Args:
        question: As it was shown.
        typed: The line. "y", "yes", "n", "no", "t" and the names of the question's own answers mean
            those answers, where the question has them; "/json VALUE" is a JSON value; the rest is text.

    Returns:
        None for an empty line, which is no answer here.

    Raises:
        ValueError: If what follows /json is not JSON.
    """
    text = typed.strip()
    if not text:
        return None
    if text.startswith("/json"):
        try:
            return json.loads(text.removeprefix("/json")), ""
        except ValueError as error:
            raise ValueError(f'that is not JSON ({error}); for example: /json {{"result": 3}}') from None
    word = text.lower()
    name = _WORDS.get(word, word)
    if name in question.answers and (name in _KEYS or not isinstance(question.answers[name], (dict, list))):
        return question.answers[name], name
    return text, ""


def sent(answer: "JsonValue", verdict: str) -> str:
    """What was sent for a typed line."""
    shown = visible(shortened(json.dumps(answer, ensure_ascii=False), _CALL_CHARS))
    words = {"approve": "approved", "deny": "denied", "trust": "approved, and trusted from now on"}
    return f"  {words[verdict]}" if verdict in words else f"  sent as the answer: {shown}"


def turn_end(stop_reason: str | None, error: "JsonObject | None") -> str | None:
    """How a turn ended, unless it was as usual."""
    if error is not None:
        return f"the turn failed: {visible(str(error.get('type')))}: {visible(str(error.get('message')))}"
    if stop_reason in (None, "end_turn", "interrupt"):
        return None
    return "the turn was stopped" if stop_reason == "cancelled" else f"the turn ended: {visible(str(stop_reason))}"
