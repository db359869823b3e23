"""`agent.state`: a key-value store of JSON that lives as long as the session."""

import copy
from collections.abc import Iterable
from typing import Any

from countersign.agent_core.json_values import JsonObject, check_json

RESERVED = "countersign:"
"""Keys of `agent.state` that begin with this hold what people decided, such as trust. No tool may write them."""


def _is_reserved(key: str) -> bool:
    return key.startswith(RESERVED)


class AgentState:
    """JSON values by key. Values are copied in and out, so a change always goes through `set`."""

    def __init__(self, initial: JsonObject | None = None) -> None:
        self._values: JsonObject = {}
        self.written: set[str] = set()
        self.deleted: set[str] = set()
        for key, value in (initial or {}).items():
            self._check(key, value)
            self._values[key] = copy.deepcopy(value)

    def get(self, key: str | None = None) -> Any:
        """A copy of the value under a key (None if there is none), or of all values."""
        return copy.deepcopy(self._values if key is None else self._values.get(key))

    def set(self, key: str, value: Any) -> None:
        """Store a value.

        Raises:
            ValueError: If the key is not text or the value is not JSON.
        """
        self._check(key, value)
        self._values[key] = copy.deepcopy(value)
        self.written.add(key)
        self.deleted.discard(key)

    def delete(self, key: str) -> None:
        """Remove a key; nothing happens if it is not there."""
        self._check(key, None)
        self._values.pop(key, None)
        self.deleted.add(key)
        self.written.discard(key)

    def merge(self, written: JsonObject, deleted: Iterable[str]) -> None:
        """Apply what a tool wrote; keys that are not a tool's to write stay as they are."""
        for key, value in written.items():
            if not _is_reserved(key):
                self.set(key, value)
        for key in deleted:
            if not _is_reserved(key):
                self.delete(key)

    def changes(self) -> tuple[JsonObject, list[str]]:
        """What was written and what was deleted since this store was made."""
        return {key: copy.deepcopy(self._values[key]) for key in sorted(self.written)}, sorted(self.deleted)

    @staticmethod
    def _check(key: object, value: object) -> None:
        if not isinstance(key, str) or not key.strip():
            raise ValueError(f"a key of agent.state must be non-empty text, not {key!r}")
        try:
            check_json(value, f"agent.state[{key!r}]")
        except TypeError as error:
            raise ValueError(str(error)) from error


def with_writes(values: JsonObject, written: JsonObject, deleted: Iterable[str]) -> JsonObject:
    """Values of `agent.state` with what a tool wrote and deleted; keys that are not a tool's to write stay."""
    gone = {key for key in deleted if not _is_reserved(key)}
    new = {key: value for key, value in written.items() if not _is_reserved(key)}
    return {key: value for key, value in {**values, **new}.items() if key not in gone}


class ToolState(AgentState):
    """`agent.state` as a tool's body has it: everything can be read, what people decided can't be written."""

    def set(self, key: str, value: Any) -> None:
        """See `AgentState.set`.

        Raises:
            ValueError: For a reserved key, too.
        """
        self._refuse_reserved(key)
        super().set(key, value)

    def delete(self, key: str) -> None:
        """See `AgentState.delete`.

        Raises:
            ValueError: For a reserved key.
        """
        self._refuse_reserved(key)
        super().delete(key)

    @staticmethod
    def _refuse_reserved(key: object) -> None:
        if isinstance(key, str) and _is_reserved(key):
            raise ValueError(
                f"agent.state[{key!r}] can't be written by a tool: keys that begin with {RESERVED!r} hold what people "
                "decided. Choose another key"
            )
