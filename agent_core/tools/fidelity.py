"""Whether what is written down of a tool's input is what runs: the one text of it, and what can have none.

Pure. An input is signed as JSON, and the JSON is what runs, on another worker and perhaps days later.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, RootModel

from countersign.agent_core.json_values import JsonObject, JsonValue, canonical_json


def in_order(value: Any, dumped: JsonValue) -> JsonValue:
    """The JSON of a value with each set in it in one order; Python's own differs from process to process.

    Args:
        value: The value.
        dumped: Its JSON, as pydantic writes it; parts that a serializer of its own made another shape of stay as
            they are.
    """
    if isinstance(value, RootModel):
        return in_order(value.root, dumped)
    if isinstance(dumped, dict):
        parts = _parts_by_key(value, dumped)
        return {key: in_order(parts[key], part) if key in parts else part for key, part in dumped.items()}
    if (
        isinstance(dumped, list)
        and isinstance(value, (list, tuple, deque, set, frozenset))
        and len(value) == len(dumped)
    ):
        items = [in_order(part, written) for part, written in zip(value, dumped, strict=True)]
        return sorted(items, key=canonical_json) if isinstance(value, (set, frozenset)) else items
    return dumped


def _parts_by_key(value: Any, dumped: JsonObject) -> dict[str, Any]:
    if isinstance(value, dict) and len(value) == len(dumped):
        return dict(zip(dumped, value.values(), strict=True))  # the keys have become text
    if isinstance(value, BaseModel):
        fields: dict[str, Any] = type(value).model_fields
    elif dataclasses.is_dataclass(value):
        fields = getattr(value, "__pydantic_fields__", {field.name: field for field in dataclasses.fields(value)})
    else:
        return {}
    return {
        getattr(field, "serialization_alias", None) or getattr(field, "alias", None) or name: getattr(value, name, None)
        for name, field in fields.items()
    }


def alike(first: Any, second: Any) -> bool:
    """True if two values are equal, as far as their types say what is; of an iterator, or an array, nobody can tell."""
    try:
        return bool(_comparable(first) == _comparable(second))
    except Exception:  # of whatever type: an array answers with an array, and refuses to be a truth
        return True


def _comparable(value: Any) -> Any:
    if isinstance(value, BaseModel):
        extra = value.__pydantic_extra__ or {}
        names = [*type(value).model_fields, *extra]
        return type(value), {name: _comparable(getattr(value, name)) for name in names}
    if dataclasses.is_dataclass(value):
        return type(value), [_comparable(getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [_comparable(part) for part in value]
    identity: Any = object.__eq__  # of a type that does not say what is equal
    return type(value) if type(value).__eq__ is identity else value


def secret_field(schema: JsonObject) -> str | None:
    """The first field that a JSON schema marks `writeOnly`, as a path from the parameter; None if there is none."""
    pending: list[tuple[Any, tuple[str, ...]]] = [(schema, ())]
    seen: set[str] = set()
    while pending:
        part, path = pending.pop()
        if isinstance(part, list):
            pending.extend((item, path) for item in part)
        if not isinstance(part, dict):
            continue
        if part.get("writeOnly") is True:
            return ".".join(path)
        target = part.get("$ref")
        if isinstance(target, str) and target not in seen:
            seen.add(target)
            pending.append((schema.get("$defs", {}).get(target.removeprefix("#/$defs/")), path))
        properties = part.get("properties")
        if isinstance(properties, dict):
            pending.extend((inner, (*path, name)) for name, inner in properties.items())
        pending.extend((inner, path) for key, inner in part.items() if key not in ("properties", "$defs", "default"))
    return None


def made_defaults(core_schema: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fields anywhere in a pydantic schema whose default a function makes, each with that function."""
    for path, item in _walked(core_schema):
        factory = item.get("default_factory")
        if callable(factory) and not item.get("default_factory_takes_data"):
            yield path, factory


def is_hidden(core_schema: Any) -> bool:
    """True if a field anywhere in a pydantic schema is left out when it is written."""
    return any(item.get("serialization_exclude") for _, item in _walked(core_schema))


def made(factories: Sequence[tuple[str, Callable[[], Any]]]) -> dict[str, Any]:
    """What each function makes now, by field; one that raises makes nothing, and says so when it is needed."""
    values: dict[str, Any] = {}
    for path, factory in factories:
        with suppress(Exception):
            values[path] = factory()
    return values


def _walked(core_schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every part of a schema of pydantic's core, with the class and field that it stands for."""
    pending: list[tuple[Any, str, str]] = [(core_schema, "", "")]
    while pending:
        item, owner, field = pending.pop()
        if isinstance(item, dict):
            yield f"{owner}.{field}", item
            owner = item.get("model_name") or item.get("dataclass_name") or item.get("cls_name") or owner
            for key, part in item.items():
                if key == "fields" and isinstance(part, dict):
                    pending.extend((inner, owner, name) for name, inner in part.items())
                elif key == "fields" and isinstance(part, list):
                    pending.extend((inner, owner, inner["name"]) for inner in part if isinstance(inner, dict))
                else:
                    pending.append((part, owner, field))
        elif isinstance(item, (list, tuple)):
            pending.extend((part, owner, field) for part in item)
