"""JSON values: what counts as one, their canonical text, and digests over it.

Answers, reasons and tool inputs are JSON. They are checked when they come in, so that what is
not JSON fails with the place of the culprit and not later, somewhere inside a converter.
"""

import hashlib
import json
import math
from typing import Any, TypeAlias

from pydantic_core import to_json

JsonValue: TypeAlias = Any
"""None, bool, int, float (finite), str, list of those, or dict from str to those."""

JsonObject: TypeAlias = dict[str, Any]


MAX_DEPTH = 100
"""Levels of nesting that are taken; Python's own JSON code gives up at a few hundred more."""


LARGEST_INT = 10**4300 - 1
"""The largest integer that is taken: Python's own JSON code reads none of more digits."""


def check_json(value: object, what: str) -> None:
    """Check that a value is JSON as it stands, so that no channel changes its type.

    Args:
        value: The value.
        what: Its name in the error message, for instance "reason".

    Raises:
        TypeError: With the path of the first part that is not JSON.
    """
    pending: list[tuple[object, str, int]] = [(value, what, 0)]
    while pending:
        item, path, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise TypeError(f"{what} is nested more than {MAX_DEPTH} levels deep, or contains itself")
        if item is None or isinstance(item, (bool, int, str)):
            if (fault := unsendable(item)) is not None:
                raise TypeError(f"{path} {fault}")
            continue
        if isinstance(item, float):
            if not math.isfinite(item):
                raise TypeError(f"{path} is {item!r}, which JSON can't hold; send a finite number or text")
            continue
        if isinstance(item, dict):
            for key, part in item.items():
                if not isinstance(key, str) or not _encodable(key):
                    raise TypeError(
                        f"{path} has the key {key!r} of type {type(key).__name__}; keys must be Unicode text"
                    )
                pending.append((part, f"{path}.{key}", depth + 1))
            continue
        if isinstance(item, list):
            pending.extend((part, f"{path}[{index}]", depth + 1) for index, part in enumerate(item))
            continue
        raise TypeError(
            f"{path} is of type {type(item).__name__}, which is not JSON; "
            "use None, True, False, a number, text, a list or a dict of those"
        )


def unsendable(item: object) -> str | None:
    """Why a text or a number can be written and not be read again, as what follows its name; None if it can."""
    if isinstance(item, int) and abs(item) > LARGEST_INT:
        return "is an integer of more than 4,300 digits, which no JSON code reads; keep it as text"
    if isinstance(item, str) and not _encodable(item):
        return "holds a lone surrogate, which is not valid Unicode text"
    return None


def copied(value: JsonValue) -> JsonValue:
    """A JSON value with lists and dicts of its own; texts and numbers, which nobody can change, are shared."""
    if isinstance(value, dict):  # a thousand messages are copied for each model call: texts get no call of their own
        own = value.copy()
        for key, part in value.items():
            if isinstance(part, (dict, list)):
                own[key] = copied(part)
        return own
    if isinstance(value, list):
        return [copied(part) if isinstance(part, (dict, list)) else part for part in value]
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def canonical_json(value: JsonValue) -> str:
    """The one text of a JSON value: sorted keys, no spaces, Unicode as it is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def json_size(value: JsonValue) -> int:
    """Size of a JSON value in bytes of UTF-8, as it is sent."""
    try:
        return len(to_json(value))
    except ValueError:  # a lone surrogate, or too deep: refused elsewhere, by name
        return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def digest(value: JsonValue) -> str:
    """SHA-256 over the canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
