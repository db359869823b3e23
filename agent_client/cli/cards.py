"""Questions as a person reads them in a shell: what will run, why, until when, how to answer."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.terminal import shortened, styled, visible_json, visible_lines
from countersign.agent_client.moments import moment
from countersign.agent_client.shell import command
from countersign.agent_core.unknown_outcomes import (
    ANSWER_WORDS,
    CALL_WORDS,
    RECORDED,
    Known,
    known_of_call,
    known_of_question,
)
from countersign.agent_core.visible import DIGEST_DIGITS, visible

if TYPE_CHECKING:
    from countersign.agent_core.wire import AnswerReceipt, Question


def question_card(session_id: str, question: "Question", now: datetime, *, width: int | None = None) -> str:
    """Everything about one question: what will run, why, since when, until when, how to answer.

    Args:
        session_id: Whose question it is.
        question: The question.
        now: The present moment.
        width: Columns of the terminal; None for lines of any length.
    """
    lines = [f"{styled(visible(question.name), 'waiting')}  ({visible(question.id)})", *_body(question, styled, width)]
    lines.append(f"  asked    {moment(question.asked_at, now)}")
    lines.append(f"  deadline {moment(question.deadline, now) if question.deadline else 'none'}")
    lines.append(f"  digest   {styled(visible(question.digest[:DIGEST_DIGITS]), 'dim')}")
    return "\n".join([*lines, *_ways_to_answer(session_id, question)])


def inline_card(question: "Question", now: datetime, width: int) -> str:
    """A question within a conversation, which offers the answers itself: what will run, why, and until when."""
    lines = [f"? {visible(question.name)}", *_body(question, lambda text, style: text, width)]
    if question.deadline is not None:
        lines.append(f"  until {moment(question.deadline, now)}")
    return "\n".join(lines)


def _body(question: "Question", style: Callable[[str, str], str], width: int | None) -> list[str]:
    """What a person signs: each call with its input, in full, and the reason."""
    lines = [] if question.calls else ["  about no single call"]
    does = CALL_WORDS[known_of_question(question)]
    for call in question.calls:
        lines += [f"  {does} {style(visible(call.tool), 'bold')} with", visible_json(call.input, "    ", width)]
    reason = question.reason
    if reason is not None:
        in_json = not isinstance(reason, str)
        lines += ["  reason", (visible_json if in_json else visible_lines)(reason, "    ", width)]
    if question.fault is not None:
        lines += ["  asked again", visible_lines(question.fault, "    ", width)]
    return lines


def _ways_to_answer(session_id: str, question: "Question") -> list[str]:
    """A command for each answer that the question offers, bound to what is shown here."""
    bound = ["--digest", question.digest[:DIGEST_DIGITS]]
    if (known := known_of_question(question)) is not None:
        return _ways_out(known, session_id, question, bound)
    lines = ["  answer with"] if {"approve", "deny"} & question.answers.keys() else []
    for verdict in ("approve", "deny"):
        if verdict in question.answers:
            lines.append(f"    {styled(command(verdict, session_id, question.id, *bound), 'bold')}")
    respond = ["respond", session_id, question.id]
    for meaning, answer in question.answers.items():
        if meaning not in ("approve", "deny"):
            lines.append(f"  {shortened(visible(f'to {meaning}'), 80)}")
            lines.append(f"    {styled(command(*respond, *_as_words(answer, bound)), 'bold')}")
    lines += ["  with words or a value of your own", f"    {command(*respond, 'VALUE', *bound)}"]
    return lines


def _ways_out(known: Known, session_id: str, question: "Question", bound: list[str]) -> list[str]:
    """What each answer to an unknown outcome does, with its command; no other answer is taken."""
    lines, respond = list[str](), ["respond", session_id, question.id]
    for meaning, words in ANSWER_WORDS[known].items():
        if meaning in question.answers:
            answer = question.answers[meaning]
            sent = _as_words(answer, bound) if isinstance(answer, str) else [RECORDED, "--json-value", *bound]
            lines += [f"  to {meaning} ({words})", f"    {styled(command(*respond, *sent), 'bold')}"]
    return lines


def _as_words(answer: Any, bound: list[str]) -> list[str]:
    """An answer as the shell's words; one that is not plain text goes as JSON, which is ASCII and keeps its type."""
    plain = isinstance(answer, str) and answer != "" and visible(answer) == answer and not answer.startswith("-")
    if plain:
        return [answer, *bound]
    text = json.dumps(answer, ensure_ascii=True)
    return ["--json-value", *bound, "--", text] if text.startswith("-") else [text, "--json-value", *bound]


def short_card(card: dict[str, Any], now: datetime, width: int | None = None) -> str:
    """A memo's card of a question: cut to fit there, so that it says nothing of how to approve it."""
    lines = [f"{styled(visible(str(card.get('name'))), 'waiting')}  ({visible(str(card.get('id')))})"]
    known = known_of_call(card)
    does = CALL_WORDS[known] if known else "would run"
    for call in _card_calls(card):
        lines.append(f"  {does} {visible(str(call.get('tool')))} with")
        lines.append(visible_lines(str(call.get("input")), "    ", width))
    if card.get("reason") not in (None, "null"):
        lines += ["  reason", visible_lines(str(card["reason"]), "    ", width)]
    lines.append(f"  asked    {moment(str(card.get('asked_at')), now)}")
    lines.append(f"  deadline {moment(str(card['deadline']), now) if card.get('deadline') else 'none'}")
    return "\n".join(lines)


def card_calls(card: dict[str, Any]) -> str:
    """What a memo's card would run, or may have: the tools with their number, and the input of a single one."""
    found, known = _card_calls(card), known_of_call(card)
    if len(found) == 1:
        does = f"{CALL_WORDS[known]}: " if known else ""
        return visible(shortened(f"{does}{found[0].get('tool', '?')} {found[0].get('input', '')}", 80))
    names = [str(call.get("tool", "?")) for call in found]
    return visible(shortened(", ".join(f"{name} ×{names.count(name)}" for name in dict.fromkeys(names)), 80))


def _card_calls(card: dict[str, Any]) -> list[dict[str, Any]]:
    calls = card.get("calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def receipt_text(session_id: str, receipt: "AnswerReceipt", word: str) -> str:
    """What was taken and what still waits.

    Args:
        session_id: Whose questions they are.
        receipt: What the session says.
        word: What was done: "approved", "denied" or "answered".
    """
    lines = [
        f"{'recorded before' if item.status == 'already_recorded' else word}: {visible(item.name)} ({visible(item.id)})"
        for item in receipt.accepted
    ]
    if receipt.open:
        count = f"{len(receipt.open)} question{'s' if len(receipt.open) > 1 else ''}"
        lines.append(f"{count} still open; see: {command('interrupts', session_id)}")
    return "\n".join(lines)
