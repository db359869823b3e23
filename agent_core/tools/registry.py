"""What a tool is, and the tools of one agent by name."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.tools.schema import ToolSpec

if TYPE_CHECKING:
    from countersign.agent_core.tools.context import ToolContext


class Tool(ABC):
    """Something that a model may ask to run.

    Attributes:
        idempotent: True if running a call twice does no harm.
        timeout: The longest that one call may take; None for the driver's default.
    """

    idempotent: bool = False
    timeout: timedelta | None = None

    @property
    @abstractmethod
    def tool_name(self) -> str:
        """The name that the model uses."""

    @property
    @abstractmethod
    def tool_spec(self) -> ToolSpec:
        """What the model is told."""

    @property
    @abstractmethod
    def is_async(self) -> bool:
        """True if `invoke` returns an awaitable; else it may block and belongs in a thread."""

    @abstractmethod
    def canonical_input(self, raw: Any) -> JsonObject:
        """The input as it will run: validated, defaults filled in, as plain JSON.

        Raises:
            ToolInputError: If the input does not fit.
        """

    @abstractmethod
    def invoke(self, canonical: JsonObject, context: "ToolContext") -> Any:
        """Run the tool. Raises what the tool's body raises."""


_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_\-]{0,63}$")


class ToolRegistry:
    """The tools of one agent."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            self.add(item)

    def add(self, item: Any) -> None:
        """Register a tool, or every tool of a list.

        Raises:
            AgentDefinitionError: For what is not a tool, a bad name, or a name that is taken.
        """
        if isinstance(item, (list, tuple)):
            for part in item:
                self.add(part)
            return
        if not isinstance(item, Tool):
            raise AgentDefinitionError(f"{item!r} is not a tool; decorate the function with @tool")
        name = item.tool_name
        if not _NAME.match(name):
            raise AgentDefinitionError(
                f"tool name {name!r}: use 1 to 64 letters, digits, _ or -, not starting with a digit or -"
            )
        if name in self._tools and self._tools[name] is not item:
            raise AgentDefinitionError(f"two tools are named {name!r}; give one another name with @tool(name=...)")
        self._tools[name] = item

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._tools)

    def specs(self) -> list[ToolSpec]:
        """What the model is told of all of them."""
        return [item.tool_spec for item in self._tools.values()]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())
