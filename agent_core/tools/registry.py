"""The tools of one agent by name."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.schema import ToolSpec
from countersign.agent_core.tools.strands_tool import strands_tools

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_\-]{0,63}$")


class ToolRegistry:
    """The tools of one agent."""

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for item in tools:
            self.add(item)

    def add(self, item: Any) -> None:
        """Register a tool, or every tool of a list; a tool or a module of Strands too.

        Raises:
            AgentDefinitionError: For what is not a tool, a bad name, or a name that is taken.
        """
        if isinstance(item, (list, tuple)):
            for part in item:
                self.add(part)
            return
        if not isinstance(item, Tool):
            adopted = list(strands_tools(item))
            if not adopted:
                raise AgentDefinitionError(f"{item!r} is not a tool; decorate the function with @tool")
            self.add(adopted)
            return
        self.check(item)
        self._tools[item.tool_name] = item

    def check(self, item: Tool) -> None:
        """What `add` checks of a tool, without adding it.

        Raises:
            AgentDefinitionError: For a bad name, or one that is taken.
        """
        name = item.tool_name
        if not _NAME.match(name):
            raise AgentDefinitionError(
                f"tool name {name!r}: use 1 to 64 letters, digits, _ or -, not starting with a digit or -"
            )
        if name in self._tools and self._tools[name] is not item:
            raise AgentDefinitionError(f"two tools are named {name!r}; give one another name with @tool(name=...)")

    @contextlib.contextmanager
    def with_tool(self, item: Tool | None) -> Iterator[None]:
        """Have one tool more for a while; None for no other than now.

        Raises:
            AgentDefinitionError: For a bad name, or one that is taken.
        """
        if item is None:
            yield
            return
        self.add(item)
        try:
            yield
        finally:
            self._tools.pop(item.tool_name, None)

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
