"""`agent.state`: a key-value store of JSON that lives as long as the session."""

import copy
from typing import Any

from countersign.agent_core.json_values import JsonObject, check_json


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

    def merge(self, written: JsonObject, deleted: list[str]) -> None:
        """Apply what a tool wrote."""
        for key, value in written.items():
            self.set(key, value)
        for key in deleted:
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
