"""What hooks and handlers remember: their attributes as tagged JSON, carried from cycle to cycle.

Plain JSON would lose tuples, sets, bytes, dates and keys that are not text, so those are tagged.
What a factory sets up and nobody changes (a client, a function) is not state and is left alone;
what changed and can't be carried is refused by name.
"""

import base64
import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from countersign.agent_core.errors import HandlerStateError
from countersign.agent_core.json_values import MAX_DEPTH, JsonObject, unsendable

_TAG = "$countersign"


def encode(value: Any, what: str, depth: int = 0) -> Any:
    """A value as tagged JSON.

    Args:
        value: None, bool, int, float, str, bytes, datetime, date, timedelta, or a list, tuple, set,
            frozenset or dict of those.
        what: Its name, for the error.
        depth: How deep it stands in what is written.

    Raises:
        HandlerStateError: If it is of another type, too deep, or can't be read again, with the path of the culprit.
    """
    if depth > MAX_DEPTH:
        name = what.partition("[")[0]
        raise HandlerStateError(f"{name} is nested more than {MAX_DEPTH} levels deep as it is written")
    if value is None or type(value) in (bool, int, float, str):
        if (fault := unsendable(value)) is not None:
            raise HandlerStateError(f"{what} {fault}")
        return value
    if type(value) is list:
        return [encode(item, f"{what}[{index}]", depth + 1) for index, item in enumerate(value)]
    if type(value) is dict:
        return _encode_dict(value, what, depth)
    if type(value) in (tuple, set, frozenset):
        items = [encode(item, f"an item of {what}", depth + 2) for item in value]
        if type(value) is not tuple:
            items.sort(key=repr)
        return {_TAG: type(value).__name__, "v": items}
    if type(value) is bytes:
        return {_TAG: "bytes", "v": base64.b64encode(value).decode("ascii")}
    if type(value) in (datetime, date):
        return {_TAG: type(value).__name__, "v": value.isoformat()}
    if type(value) is timedelta:
        return {_TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]}
    raise HandlerStateError(
        f"{what} is of type {type(value).__name__}, which can't be carried from cycle to cycle. Keep plain values "
        "there (text, numbers, lists, dicts, sets, dates), or keep it in agent.state"
    )


def _encode_dict(value: dict[Any, Any], what: str, depth: int) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        for key in value:
            encode(key, f"a key of {what}", depth)
        return {key: encode(item, f"{what}[{key!r:.100}]", depth + 1) for key, item in value.items()}
    pairs = [
        [encode(key, f"a key of {what}", depth + 3), encode(item, f"{what}[{key!r:.100}]", depth + 3)]
        for key, item in value.items()
    ]
    return {_TAG: "dict", "v": pairs}


def decode(value: Any) -> Any:
    """A value from tagged JSON."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(_TAG)
    content: Any = value.get("v")
    if tag is None:
        return {key: decode(item) for key, item in value.items()}
    makers: dict[str, Callable[[], Any]] = {
        "tuple": lambda: tuple(decode(item) for item in content),
        "set": lambda: {decode(item) for item in content},
        "frozenset": lambda: frozenset(decode(item) for item in content),
        "bytes": lambda: base64.b64decode(content),
        "datetime": lambda: datetime.fromisoformat(content),
        "date": lambda: date.fromisoformat(content),
        "timedelta": lambda: timedelta(*content),
        "dict": lambda: {decode(key): decode(item) for key, item in content},
    }
    if tag not in makers:
        raise HandlerStateError(f"carried state has the unknown tag {tag!r}; it comes from a newer version")
    return makers[tag]()


_NOTHING = object()


class Memory:
    """The remembered attributes of an agent's hooks and handlers.

    Args:
        owners: The objects, in order; fresh from the agent's factory.
    """

    def __init__(self, owners: Sequence[object]) -> None:
        self._owners: dict[str, object] = {}
        for owner in owners:
            label = _label(owner)
            number = sum(1 for known in self._owners if known.split("#")[0] == label)
            self._owners[f"{label}#{number}" if number else label] = owner
        self._at_start = {key: dict(_attributes(owner)) for key, owner in self._owners.items()}
        self._written_at_start = {key: _encodable(owner) for key, owner in self._owners.items()}
        self._unknown: JsonObject = {}

    def take(self) -> JsonObject:
        """The attributes that have changed since the factory made them, as JSON.

        What did not change is not state but how the owner was set up: a deployment may set it up otherwise.

        Raises:
            HandlerStateError: If one has changed and can't be carried, by name.
        """
        taken: JsonObject = dict(self._unknown)
        for key, owner in self._owners.items():
            kept: JsonObject = {}
            written = self._written_at_start[key]
            for name, value in _attributes(owner).items():
                try:
                    now = encode(value, f"{type(owner).__name__}.{name}")
                except HandlerStateError:
                    # What the factory set up so may stay so. A list that now holds more is a change.
                    if name in written or self._at_start[key].get(name, _NOTHING) is not value:
                        raise
                    continue
                if name not in written or _text(written[name]) != _text(now):
                    kept[name] = now
            if kept:
                taken[key] = kept
        return taken

    def unknown(self) -> list[str]:
        """Owners of restored attributes that are none of these objects."""
        return list(self._unknown)

    def restore(self, taken: JsonObject) -> None:
        """Put attributes back as they were when taken. Owners that are gone are remembered still."""
        self._unknown.update({key: attributes for key, attributes in taken.items() if key not in self._owners})
        for key, owner in self._owners.items():
            attributes = {**self._written_at_start[key], **taken.get(key, {})}
            for name, value in attributes.items():
                if name not in _attributes(owner) or _differs(_attributes(owner)[name], value):
                    object.__setattr__(owner, name, decode(value))
            for name in set(_attributes(owner)) - set(attributes) - set(self._at_start[key]):
                object.__delattr__(owner, name)


def _attributes(owner: object) -> dict[str, Any]:
    return getattr(owner, "__dict__", {})


def _encodable(owner: object) -> JsonObject:
    """The attributes that can be carried, as they are now."""
    found: JsonObject = {}
    for name, value in _attributes(owner).items():
        with contextlib.suppress(HandlerStateError):
            found[name] = encode(value, name)
    return found


def _differs(value: Any, written: Any) -> bool:
    try:
        return _text(encode(value, "")) != _text(written)
    except HandlerStateError:
        return True


def _text(written: Any) -> str:
    """A written value's text: True and 1 are two, and NaN is itself."""
    return json.dumps(written, sort_keys=True)


def _label(owner: object) -> str:
    """Class and, where it has one, name: a place in a list would break when a hook is added."""
    name = getattr(owner, "name", None)
    kind = type(owner).__qualname__
    return f"{kind}:{name}" if isinstance(name, str) else kind
