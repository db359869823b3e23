"""What a person types at a question and what that means; how a turn has ended. Text in, text out."""

import json
from typing import TYPE_CHECKING

from countersign.agent_client.answers import parsed_value
from countersign.agent_client.cli.terminal import shortened
from countersign.agent_core.unknown_outcomes import ANSWER_WORDS, RECORDED, known_of_question
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_core.json_values import JsonObject, JsonValue
    from countersign.agent_core.wire import Question

_SENT_CHARS = 300
_KEYS = {"approve": "y", "deny": "n", "trust": "t"}
"""What is typed for the answers that most questions offer."""

_WORDS = {"y": "approve", "yes": "approve", "n": "deny", "no": "deny", "t": "trust"}


def offer(question: "Question") -> str:
    """What can be typed for a question, in one line."""
    about = known_of_question(question)
    if about is not None:  # no other words are taken
        typed = {"record a result": f"/json {RECORDED}"}
        ways = [f"{typed.get(name, name)} ({words})" for name, words in ANSWER_WORDS[about].items()]
        return ", ".join(ways)
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
            return parsed_value(text.removeprefix("/json")), ""
        except ValueError as error:
            raise ValueError(f'that is {error}; for example: /json {{"result": 3}}') from None
    name = _name(question, text)
    if name in question.answers and (name in _KEYS or not isinstance(question.answers[name], (dict, list))):
        return question.answers[name], name
    return text, ""


def _name(question: "Question", text: str) -> str:
    """Which of the question's answers a text names, in capitals or not; the text itself if none."""
    for word in (text, _WORDS.get(text.lower(), text)):  # its own names first, as they are offered
        if word in question.answers:
            return word
        for name in question.answers:
            if name.casefold() == word.casefold():
                return name
    return word


def sent(answer: "JsonValue", verdict: str) -> str:
    """What was sent for a typed line."""
    shown = visible(shortened(json.dumps(answer, ensure_ascii=False), _SENT_CHARS))
    words = {"approve": "approved", "deny": "denied", "trust": "approved, and trusted from now on"}
    return f"  {words[verdict]}" if verdict in words else f"  sent as the answer: {shown}"


def turn_end(stop_reason: str | None, error: "JsonObject | None") -> str | None:
    """How a turn ended, unless it was as usual."""
    if error is not None:
        return f"the turn failed: {visible(str(error.get('type')))}: {visible(str(error.get('message')))}"
    if stop_reason in (None, "end_turn", "interrupt", "tool_use"):
        return None
    return "the turn was stopped" if stop_reason == "cancelled" else f"the turn ended: {visible(str(stop_reason))}"
