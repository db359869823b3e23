"""Tools of `strands-agents` as tools of ours: functions under its `@tool`, and modules with a TOOL_SPEC.

They are known by their shape; `strands` is not imported here. The input of a function is validated by
its signature, like that of our own tools; of a module only a JSON schema is known.
"""

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.context import ToolContext
from countersign.agent_core.tools.json_schema import SchemaInputs
from countersign.agent_core.tools.schema import CompiledTool, ToolSpec, compile_tool

_FILLED_IN = frozenset({"self", "cls", "agent"})
"""Parameters that Strands fills in itself, beside the context."""


def strands_tools(item: object) -> Iterator[Tool]:
    """The tools that an item of Strands stands for; none if it is not of Strands.

    Args:
        item: A function under Strands' `@tool`, or a module with such functions, or with a
            TOOL_SPEC and a function of the module's name.
    """
    if _is_decorated(item):
        yield StrandsTool(item)
    elif isinstance(item, ModuleType):
        decorated = [value for value in vars(item).values() if _is_decorated(value)]
        yield from (StrandsTool(value) for value in decorated)
        spec, function = getattr(item, "TOOL_SPEC", None), getattr(item, item.__name__.split(".")[-1], None)
        if not decorated and isinstance(spec, dict) and callable(function):
            yield StrandsTool(_ModuleTool(spec, function))


def _is_decorated(item: object) -> bool:
    wanted = ("tool_name", "tool_spec", "stream")
    if isinstance(item, (type, Tool)):
        return False
    # Looked up without running anything: a module may hold objects that answer to any name, or raise.
    return all(inspect.getattr_static(item, name, None) is not None for name in wanted)


class _ModuleTool:
    """A module's function in the shape of a decorated one."""

    def __init__(self, spec: JsonObject, function: Callable[..., Any]) -> None:
        self.tool_name, self.tool_spec = str(spec.get("name") or function.__name__), spec
        self._function = function

    async def stream(self, tool_use: JsonObject, invocation_state: JsonObject, **kwargs: Any) -> Any:
        if inspect.iscoroutinefunction(self._function):
            result = await self._function(tool_use, **invocation_state)
        else:
            result = await asyncio.to_thread(self._called, tool_use, invocation_state)
        yield {"tool_result": result}

    def _called(self, tool_use: JsonObject, invocation_state: JsonObject) -> Any:
        try:
            return self._function(tool_use, **invocation_state)
        except StopIteration as error:  # a future can't hold one, and whoever waits for it would wait for ever
            raise RuntimeError("StopIteration") from error


class StrandsTool(Tool):
    """A tool of Strands. It runs once for each approval, like any other: never idempotent, no timeout of its own.

    Args:
        tool: An object with Strands' `tool_name`, `tool_spec` and `stream`.
    """

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    @property
    def tool_name(self) -> str:
        return str(self._tool.tool_name)

    @property
    def tool_spec(self) -> ToolSpec:
        return self._inputs.spec

    def adopt(self, built: Tool) -> None:
        if isinstance(built, StrandsTool):
            self._inputs = built._inputs

    @property
    def is_async(self) -> bool:
        return not self._is_plain

    @cached_property
    def _function(self) -> Callable[..., Any] | None:
        """The function under the decorator; None if it can't be seen."""
        function = getattr(self._tool, "__wrapped__", None)
        return function if inspect.isroutine(function) else None

    @cached_property
    def _is_plain(self) -> bool:
        """True for a sync function: it runs in a thread like our own, which takes whatever it raises."""
        function = self._function
        return function is not None and not (
            inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        )

    def canonical_input(self, raw: Any) -> JsonObject:
        return self._inputs.canonical_input(raw)

    @cached_property
    def _inputs(self) -> CompiledTool | SchemaInputs:
        """What validates the input: the function's own signature where it can be seen, else the schema."""
        spec = self._tool.tool_spec
        description, schema = spec["description"], spec["inputSchema"].get("json", spec["inputSchema"])
        function = self._function
        if function is None:
            return SchemaInputs(self.tool_name, description, schema)
        special = frozenset(inspect.signature(function).parameters) & {*_FILLED_IN, self._context_name}
        # A default may stand in the code and not in the schema: the signature knows every value that will run.
        return compile_tool(function, name=self.tool_name, description=description, input_schema=schema, skip=special)

    @property
    def _context_name(self) -> str:
        """The parameter that gets the context, if any."""
        return str(getattr(getattr(self._tool, "_metadata", None), "_context_param", None) or "")

    def invoke(self, canonical: JsonObject, context: ToolContext) -> Any:
        """Run the tool; its body may ask through Strands' `tool_context.interrupt`."""
        return self._call(canonical, context) if self._is_plain else self._stream(canonical, context)

    def _call(self, canonical: JsonObject, context: ToolContext) -> Any:
        """Call a plain function as Strands would: nested models arrive as dicts, context and agent are filled in."""
        function, inputs = self._function, self._inputs
        assert function is not None
        assert isinstance(inputs, CompiledTool)
        arguments = inputs.validated(canonical).model_dump()
        parameters = inspect.signature(function).parameters
        filled = {self._context_name: _StrandsContext(context), "agent": context.agent}
        return function(**arguments, **{name: value for name, value in filled.items() if name in parameters})

    async def _stream(self, canonical: JsonObject, context: ToolContext) -> Any:
        given = copy.deepcopy(canonical)
        if self._function is not None:  # Strands takes a parameter that is None by default left out, and not as null
            parameters = inspect.signature(self._function).parameters
            nulls = {name for name, value in given.items() if value is None and parameters[name].default is None}
            given = {name: value for name, value in given.items() if name not in nulls}
        use = {**context.tool_use, "input": given}
        state = {**context.invocation_state, "agent": context.agent}
        result: Any = None
        async for event in self._tool.stream(use, state, _tool_context=_StrandsContext(context)):
            exception = getattr(event, "exception", None)
            if isinstance(exception, Exception):
                raise exception
            if isinstance(event, dict) and "tool_result" in event:
                result = event["tool_result"]
        return result


class _StrandsContext:
    """A `ToolContext` as tools of Strands know it."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.tool_use, self.agent = context.tool_use, context.agent
        self.invocation_state = context.invocation_state
        self.cancel_signal = threading.Event()  # never set: a stop lets running tools finish

    def interrupt(self, name: str, reason: Any = None, response: Any = None) -> Any:
        """Ask a person, as Strands' does; a response given beforehand needs nobody."""
        return response if response is not None else self._context.interrupt(name, reason)
