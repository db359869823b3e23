"""Tools of `strands-agents` as tools of ours: functions under its `@tool`, and modules with a TOOL_SPEC.

They are known by their shape; `strands` is not imported here. What they have to say of their input
is a JSON schema, so `jsonschema` (which Strands brings) validates it.
"""

import asyncio
import copy
import inspect
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError, ToolInputError
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.context import ToolContext
from countersign.agent_core.tools.schema import ToolSpec


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
        self.tool_name, self.tool_spec = spec["name"], spec
        self._function = function

    async def stream(self, tool_use: JsonObject, invocation_state: JsonObject, **kwargs: Any) -> Any:
        if inspect.iscoroutinefunction(self._function):
            result = await self._function(tool_use, **invocation_state)
        else:
            result = await asyncio.to_thread(self._function, tool_use, **invocation_state)
        yield {"tool_result": result}


class StrandsTool(Tool):
    """A tool of Strands. It runs once for each approval, like any other: never idempotent, no timeout of its own.

    Args:
        tool: An object with Strands' `tool_name`, `tool_spec` and `stream`.

    Raises:
        AgentDefinitionError: If its schema is not a JSON schema.
    """

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    @property
    def tool_name(self) -> str:
        return str(self._tool.tool_name)

    @cached_property
    def _schema(self) -> JsonObject:
        found = self._tool.tool_spec["inputSchema"]
        schema: JsonObject = found.get("json", found)
        return schema

    @property
    def tool_spec(self) -> ToolSpec:
        spec = self._tool.tool_spec
        assert self._validator is not None  # made before a workflow needs it
        return {"name": self.tool_name, "description": spec["description"], "inputSchema": {"json": self._schema}}

    @cached_property
    def _validator(self) -> Any:
        import jsonschema  # noqa: PLC0415 (comes with Strands, and is not there without)

        kind = jsonschema.validators.validator_for(self._schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(self._schema)
        except jsonschema.SchemaError as error:
            raise AgentDefinitionError(f"tool {self.tool_name}: its schema is not valid: {error.message}") from error
        return kind(self._schema)

    @property
    def is_async(self) -> bool:
        return True

    def canonical_input(self, raw: Any) -> JsonObject:
        """The input with the schema's defaults filled in; no value is turned into another type."""
        if not isinstance(raw, dict):
            raise ToolInputError(
                f"the input of {self.tool_name} must be an object, not {type(raw).__name__}: {raw!r:.200}"
            )
        try:
            check_json(raw, "input")
        except TypeError as error:
            raise ToolInputError(f"the input of {self.tool_name} is not JSON: {error}") from error
        given = {name: value for name, value in raw.items() if not self._left_out(name, value)}
        faults = "; ".join(f"{fault.json_path}: {fault.message}" for fault in self._validator.iter_errors(given))
        if faults:
            raise ToolInputError(f"the input of {self.tool_name} does not fit its schema: {faults}")
        properties = self._schema.get("properties", {})
        unknown = sorted(set(given) - set(properties))
        if unknown and not self._schema.get("additionalProperties"):
            raise ToolInputError(f"the input of {self.tool_name} has no parameter {', '.join(unknown)}")
        defaults = {name: part["default"] for name, part in properties.items() if part.get("default") is not None}
        return {**copy.deepcopy(defaults), **given}

    def _left_out(self, name: str, value: Any) -> bool:
        """True for null where null is the default: Strands says "string" of a parameter that may be left out,
        and neither its schema nor its tool then takes the null."""
        part = self._schema.get("properties", {}).get(name, {})
        return value is None and "default" in part and part["default"] is None

    async def invoke(self, canonical: JsonObject, context: ToolContext) -> Any:
        """Run the tool; its body may ask through Strands' `tool_context.interrupt`."""
        use = {**context.tool_use, "input": copy.deepcopy(canonical)}
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
