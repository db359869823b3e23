"""Reads answers as they come from outside: shapes, refusals and their codes.

Presence counts, not truth: False, 0, "", [], {} and null are answers.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.json_values import JsonObject, canonical_json, check_json, json_size
from countersign.agent_core.moments import moment_of
from countersign.agent_core.wire import MAX_PROMPT_BYTES

REFUSAL_CODES: Mapping[str, str] = {
    "malformed": "not an interruptResponse block or a list of them",
    "empty": "a list without answers, or a prompt without content",
    "not_json": "a response that is not JSON",
    "too_large": "more bytes than can be sent",
    "duplicate": "one interruptId twice, and not the same",
    "unknown_interrupt": "no question has this id",
    "not_interrupted": "the session asks nothing at the moment",
    "already_answered": "the first answer wins",
    "expired": "the deadline has passed",
    "withdrawn": "the question is not asked any more",
    "outdated": "the digest is not that of the question",
    "interrupted": "the session waits for answers, not for a prompt",
    "closed": "the session takes nothing any more",
    "too_many_waiting": "five invokes wait already, or more prompts than are kept",
    "update_id_reused": "the update id was used for other content",
}

ANSWER_LIMIT_BYTES = 400_000
"""The most that one batch of answers may weigh."""

_SHOWN = 120
"""Characters of a value in a refusal."""


@dataclass(frozen=True)
class ParsedAnswer:
    """One answer, read but not yet held against the session.

    Attributes:
        interrupt_id: The question.
        response: Any JSON value.
        digest: What the person saw, if the channel says.
        responder: Who claims to answer.
        comment: Free text.
        at: When they claim to have said it, as an ISO time; never trusted to be later than its coming.
    """

    interrupt_id: str
    response: Any
    digest: str | None = None
    responder: JsonObject | None = None
    comment: str | None = None
    at: str | None = None


def parse_answers(raw: Any) -> list[ParsedAnswer]:
    """Read one `interruptResponse` block or a list of them.

    Raises:
        AnswerRefused: With a code and what to do, for anything else.
    """
    blocks = raw if isinstance(raw, list) else [raw]
    if not blocks:
        raise AnswerRefused("empty", "the list of answers is empty; send at least one interruptResponse block")
    try:
        check_json(raw, "answer")
    except TypeError as error:
        raise AnswerRefused("not_json", str(error)) from error
    size = json_size(raw)
    if size > ANSWER_LIMIT_BYTES:
        raise AnswerRefused(
            "too_large", f"the answers are {size:,} bytes; at most {ANSWER_LIMIT_BYTES:,} bytes are taken"
        )
    found: dict[str, ParsedAnswer] = {}
    for index, block in enumerate(blocks):
        answer = _parse(block, index)
        known = found.get(answer.interrupt_id)
        if known is not None and canonical_json(known.response) != canonical_json(answer.response):
            raise AnswerRefused(
                "duplicate", f"interruptId {answer.interrupt_id!r} stands twice in the batch with different responses"
            )
        found[answer.interrupt_id] = answer
    return list(found.values())


def check_said_alike(raw: Any) -> None:
    """Refuse what is said twice and not alike: of two digests one would be forgotten, and of two people.

    Args:
        raw: Answers that `parse_answers` takes.

    Raises:
        AnswerRefused: Naming the question.
    """
    said: dict[str, str] = {}
    for index, block in enumerate(raw if isinstance(raw, list) else [raw]):
        inner, answer = block["interruptResponse"], _parse(block, index)
        for name in ("digest", "responder", "comment", "at"):
            if name in block and name in inner and canonical_json(block[name]) != canonical_json(inner[name]):
                raise AnswerRefused(
                    "malformed",
                    f"answer {index} ({answer.interrupt_id}) says {name} in its interruptResponse and another one "
                    "beside it; send one",
                )
        whole = canonical_json(asdict(answer))
        if said.setdefault(answer.interrupt_id, whole) != whole:
            raise AnswerRefused(
                "duplicate",
                f"interruptId {answer.interrupt_id!r} stands twice in the batch, and not with the same digest, "
                "responder, comment and time",
            )


def _parse(block: Any, index: int) -> ParsedAnswer:
    inner = block.get("interruptResponse") if isinstance(block, dict) else None
    if not isinstance(inner, dict):
        raise AnswerRefused(
            "malformed",
            f"answer {index} is {_short(block)}; send "
            '{"interruptResponse": {"interruptId": "...", "response": ...}}',
        )
    interrupt_id = inner.get("interruptId")
    if not isinstance(interrupt_id, str) or not interrupt_id:
        raise AnswerRefused(
            "malformed", f"answer {index} has the interruptId {_short(interrupt_id)}; send the question's id"
        )
    if "response" not in inner:
        raise AnswerRefused(
            "malformed", f"answer {index} ({interrupt_id}) has no response; null is one, a missing key is not"
        )
    extra = {**block, **inner}
    digest, responder, comment = extra.get("digest"), extra.get("responder"), extra.get("comment")
    if digest is not None and not isinstance(digest, str):
        raise AnswerRefused("malformed", f"answer {index}: digest must be text, not {_short(digest)}")
    if responder is not None and not isinstance(responder, dict):
        raise AnswerRefused(
            "malformed", f'answer {index}: responder must be like {{"id": "..."}}, not {_short(responder)}'
        )
    if comment is not None and not isinstance(comment, str):
        raise AnswerRefused("malformed", f"answer {index}: comment must be text, not {_short(comment)}")
    at = extra.get("at")
    if at is not None and moment_of(at) is None:
        raise AnswerRefused(
            "malformed",
            f'answer {index}: at must be a time with a zone, like "2026-11-30T09:00:00Z", not {_short(at)}',
        )
    return ParsedAnswer(interrupt_id, inner["response"], digest, responder, comment, at)


def check_prompt(content: Any) -> list[JsonObject]:
    """Content blocks of a prompt.

    Raises:
        AnswerRefused: If it is empty, not text or content blocks, not JSON, or too large.
    """
    if isinstance(content, str):
        content = [{"text": content}] if content.strip() else []
    if content is None or content == []:
        raise AnswerRefused("empty", "the prompt is empty; send text or content blocks")
    if not isinstance(content, list) or not all(isinstance(block, dict) and block for block in content):
        raise AnswerRefused("malformed", f"the prompt is {_short(content)}; send text or a list of content blocks")
    if any("interruptResponse" in block for block in content):
        raise AnswerRefused("not_interrupted", "interruptResponse blocks are answers, not a prompt")
    if any("role" in block for block in content):
        raise AnswerRefused(
            "malformed", "a prompt can't carry whole messages; a conversation to start from is Agent(messages=...)"
        )
    if any("toolResult" in block or "toolUse" in block for block in content):
        raise AnswerRefused("malformed", "a prompt can't carry toolUse or toolResult blocks")
    try:
        check_json(content, "prompt")
    except TypeError as error:
        raise AnswerRefused("not_json", str(error)) from error
    size = json_size(content)
    if size > MAX_PROMPT_BYTES:
        raise AnswerRefused("too_large", f"the prompt is {size:,} bytes; at most {MAX_PROMPT_BYTES:,} bytes are taken")
    return content


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
