"""Answers as they are sent, and the id under which one is sent however often. Pure.

An answer's response keeps its JSON type: False, 0, "" and null are answers like any other.
"""

import json
import uuid
from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

from countersign.agent_core.json_values import JsonObject, JsonValue, canonical_json, check_json
from countersign.agent_core.wire import Question

OneAnswer: TypeAlias = JsonObject | tuple[str, JsonValue]
"""An `{"interruptResponse": {...}}` block, or (interrupt id, response)."""

Responder: TypeAlias = str | JsonObject
"""Who answers, as a claim: an id, or `{"id": ..., ...}`."""


def answer_block(
    interrupt_id: str,
    response: JsonValue,
    *,
    digest: str | None = None,
    responder: Responder | None = None,
    comment: str | None = None,
) -> JsonObject:
    """One answer as it is sent.

    Args:
        interrupt_id: The question's id.
        response: Any JSON value.
        digest: The question's digest as the person saw it; a question that changed is then refused.
        responder: Who answers.
        comment: Their words, for the audit trail.
    """
    body: JsonObject = {"interruptId": interrupt_id, "response": response}
    if digest is not None:
        body["digest"] = digest
    if responder is not None:
        body["responder"] = {"id": responder} if isinstance(responder, str) else responder
    if comment is not None:
        body["comment"] = comment
    return {"interruptResponse": body}


def answer_blocks(
    answers: OneAnswer | Sequence[OneAnswer],
    *,
    digest: str | None = None,
    responder: Responder | None = None,
    comment: str | None = None,
) -> list[JsonObject]:
    """A batch of answers as it is sent; what stands in a block wins over the arguments here.

    Raises:
        TypeError: For what is neither a block nor (id, response), or is not JSON.
        ValueError: For an empty batch.
    """
    items = [answers] if isinstance(answers, (dict, tuple)) else list(answers)
    if not items:
        raise ValueError("no answers given; pass (interrupt_id, response) or an interruptResponse block")
    blocks = []
    for item in items:
        given = {"interruptId": item[0], "response": item[1]} if _is_pair(item) else _body(item)
        extra = answer_block("", None, digest=digest, responder=responder, comment=comment)["interruptResponse"]
        around = item if isinstance(item, dict) else {}
        beside = {name: value for name, value in around.items() if name != "interruptResponse"}
        extra = {name: value for name, value in extra.items() if name not in beside}
        blocks.append({**beside, "interruptResponse": {**extra, **given}})
    check_json(blocks, "answers")
    return blocks


def _is_pair(item: object) -> TypeGuard[tuple[str, JsonValue]]:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _body(item: object) -> JsonObject:
    body = item.get("interruptResponse") if isinstance(item, dict) else None
    if not isinstance(body, dict) or not isinstance(body.get("interruptId"), str) or "response" not in body:
        raise TypeError(
            f"{item!r} is no answer; use (interrupt_id, response) or "
            '{"interruptResponse": {"interruptId": "...", "response": ...}}'
        )
    return body


def is_answer_batch(content: object) -> TypeGuard[OneAnswer | list[OneAnswer]]:
    """True for answers in any form that `answer_blocks` takes: what `invoke` takes beside a prompt."""
    items = content if isinstance(content, list) else [content]
    return bool(items) and all(
        _is_pair(item) or (isinstance(item, dict) and "interruptResponse" in item) for item in items
    )


def parsed_value(text: str) -> JsonValue:
    """The JSON value that somebody has written.

    Raises:
        ValueError: If it is none, or none that can be sent: JSON has no NaN and no number without an end.
    """
    try:
        value: JsonValue = json.loads(text)
        check_json(value, "it")
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    return value


def verdict_block(
    question: Question, verdict: str, responder: Responder | None = None, comment: str | None = None
) -> JsonObject:
    """The answer that a question itself names for a verdict, bound to what was shown.

    Args:
        question: As it was shown.
        verdict: "approve" or "deny".
        responder: Who answers.
        comment: Their words.

    Raises:
        ValueError: If the question has no such answer.
    """
    if verdict not in question.answers:
        raise ValueError(
            f"question {question.id} ({question.name}) has no answer for {verdict!r}; it takes: "
            f"{', '.join(question.answers) or 'a free answer'}. Send one with respond"
        )
    return answer_block(
        question.id, question.answers[verdict], digest=question.digest, responder=responder, comment=comment
    )


def is_answer_of(question: Question, block: JsonObject, digest: str) -> bool:
    """Whether a question has this very answer: the same value, by the same responder.

    Args:
        question: One that was answered.
        block: The answer, see `answer_block`.
        digest: Beginning of the digest that was seen; "" for any.
    """
    given, had = block["interruptResponse"], question.answer
    return (
        had is not None
        and question.digest.startswith(digest.lower())
        and canonical_json(had.response) == canonical_json(given["response"])
        and had.responder == given.get("responder")
    )


def denial_block(
    question: Question, words: str, responder: Responder | None = None, comment: str | None = None
) -> JsonObject:
    """A refusal with words that the model reads, "n: WORDS", bound to what was shown.

    It begins with the question's own word for no, so that the session takes it for one, whatever the code
    that asked makes of it.

    Args:
        question: As it was shown.
        words: Why not.
        responder: Who answers.
        comment: For the audit trail only.

    Raises:
        ValueError: If the words are blank, or the question's own refusal is not text.
    """
    refusal = question.answers.get("deny")
    if not words.strip():
        raise ValueError("the reason is empty; say why not, or leave it out")
    if not isinstance(refusal, str):
        raise ValueError(
            f"question {question.id} ({question.name}) takes {json.dumps(refusal)} as its refusal, which can't carry "
            "a reason; deny without one, or send what the asker understands with respond"
        )
    return answer_block(
        question.id, f"{refusal}: {words}", digest=question.digest, responder=responder, comment=comment
    )


def request_id(kind: str, given: str | None = None) -> str:
    """An id for one thing sent once, kept over re-sends; random, as it stands in the history in plain text.

    Args:
        kind: What is sent.
        given: The sender's own id for it; None for a random one.

    Raises:
        ValueError: For one that is blank.
    """
    if given is not None and not given.strip():
        raise ValueError(f"update_id is blank, so that it names nothing; give one of this {kind} only, or none")
    return given or f"{kind}-{uuid.uuid4().hex}"
