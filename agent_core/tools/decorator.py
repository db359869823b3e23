"""`@tool`: turns a function or method into a tool."""

import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypeVar, overload

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.context import ToolContext
from countersign.agent_core.tools.parameters import check_parameters
from countersign.agent_core.tools.schema import CompiledTool, ToolSpec, compile_tool

P = ParamSpec("P")
R = TypeVar("R")

_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/\-]{0,199}\Z")


class DecoratedTool(Tool, Generic[P, R]):
    """A function or bound method that works as a tool, and still as the function that it was."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        description: str | None = None,
        input_schema: JsonObject | None = None,
        context: str | None = None,
        idempotent: bool = False,
        timeout: timedelta | None = None,
        queue: str | None = None,
        queue_timeout: timedelta | None = None,
        bound_to: object | None = None,
    ) -> None:
        self._function = function
        self._name = name
        self._description = description
        self._input_schema = input_schema
        self._context = context
        self._bound_to = bound_to
        self._compiled: CompiledTool | None = None
        self.idempotent = idempotent
        self.timeout = timeout
        self.queue = queue
        self.queue_timeout = queue_timeout
        functools.update_wrapper(self, function)

    @property
    def tool_name(self) -> str:
        return self._name

    @property
    def compiled(self) -> CompiledTool:
        """Spec and validator, built at first use."""
        if self._compiled is None:
            skip = {self._context} if self._context else set()
            skip |= self._filled_in
            if self._takes_self:
                skip.add(next(iter(inspect.signature(self._function).parameters)))
            self._compiled = compile_tool(
                self._function,
                name=self._name,
                description=self._description,
                input_schema=self._input_schema,
                skip=frozenset(skip),
            )
        return self._compiled

    def adopt(self, built: Tool) -> None:
        if isinstance(built, DecoratedTool):
            self._compiled = built.compiled

    @property
    def tool_spec(self) -> ToolSpec:
        return self.compiled.spec

    def canonical_input(self, raw: Any) -> JsonObject:
        return self.compiled.canonical_input(raw)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self._function) or inspect.isasyncgenfunction(self._function)

    def invoke(self, canonical: JsonObject, context: ToolContext) -> Any:
        arguments = self.compiled.arguments(canonical)
        if self._context:
            arguments[self._context] = context
        arguments.update(dict.fromkeys(self._filled_in, context.agent))
        return self._call(**arguments)

    @property
    def _filled_in(self) -> set[str]:
        """A parameter called `agent` gets the agent, as in Strands: its name and its state."""
        return {"agent"} & set(inspect.signature(self._function).parameters)

    @property
    def _takes_self(self) -> bool:
        return self._bound_to is not None

    @property
    def _call(self) -> Callable[..., Any]:
        return self._function if self._bound_to is None else types.MethodType(self._function, self._bound_to)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it were not decorated."""
        result: R = self._call(*args, **kwargs)
        return result

    def __get__(self, instance: object | None, owner: type | None = None) -> "DecoratedTool[P, R]":
        """A method's tool, bound to its instance."""
        if instance is None:
            return self
        key = f"_countersign_tool_{self._name}"
        held: DecoratedTool[P, R] | None = getattr(instance, "__dict__", {}).get(key)
        if held is None:
            held = DecoratedTool(
                self._function,
                name=self._name,
                description=self._description,
                input_schema=self._input_schema,
                context=self._context,
                idempotent=self.idempotent,
                timeout=self.timeout,
                queue=self.queue,
                queue_timeout=self.queue_timeout,
                bound_to=instance,
            )
        return held


@overload
def tool(function: Callable[P, R], /) -> DecoratedTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    inputSchema: Mapping[str, Any] | None = None,
    context: bool | str = False,
    idempotent: bool = False,
    timeout: timedelta | None = None,
    queue: str | None = None,
    queue_timeout: timedelta | None = None,
) -> Callable[[Callable[P, R]], DecoratedTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    inputSchema: Mapping[str, Any] | None = None,
    context: bool | str = False,
    idempotent: bool = False,
    timeout: timedelta | None = None,
    queue: str | None = None,
    queue_timeout: timedelta | None = None,
) -> Any:
    """Make a tool of a function; its schema comes from its signature and docstring, at first use.

    Args:
        function: The function, when used without parentheses. Sync functions run in threads.
        name: The tool's name; the function's if None.
        description: What the model reads; the docstring without its Args section if None.
        inputSchema: A JSON schema to show the model instead of the derived one.
        context: True passes a `ToolContext` as the parameter `tool_context`; text names another one.
        idempotent: True if running a call twice does no harm: it is then retried after a crash
            instead of asking a person.
        timeout: The longest that one call may take on a worker; an hour if None. In-process nothing bounds it.
        queue: Task queue of the workers that run it (`worker.py --tools-only`), for instance because only they
            hold the credentials; the agent's own if None. In-process it runs here all the same.
        queue_timeout: How long a call may wait for a worker of that queue before a person is asked; 10 minutes
            if None.

    Raises:
        AgentDefinitionError: If the decorated object is not a function, takes what no model can fill in, or the
            context without `context`; or if no task queue can be called so.
    """
    _check_queue(queue, queue_timeout)
    parameter = "tool_context" if context is True else (context or None)

    def decorate(target: Callable[..., Any]) -> DecoratedTool[..., Any]:
        if not callable(target) or not hasattr(target, "__name__"):
            raise AgentDefinitionError(f"@tool takes a function, not {target!r}")
        called = name or target.__name__
        check_parameters(target, called, parameter)
        return DecoratedTool(
            target,
            name=called,
            description=description,
            input_schema=_bare_schema(inputSchema),
            context=parameter,
            idempotent=idempotent,
            timeout=timeout,
            queue=queue,
            queue_timeout=queue_timeout,
        )

    return decorate if function is None else decorate(function)


def _bare_schema(given: Mapping[str, Any] | None) -> JsonObject | None:
    if given is None:
        return None
    inner = given.get("json", given)
    return dict(inner)


def _check_queue(queue: str | None, wait: timedelta | None) -> None:
    """Refuse what no worker could be started with: the call would wait for it in vain.

    Raises:
        AgentDefinitionError: Naming the value.
    """
    if queue is None:
        if wait is not None:
            raise AgentDefinitionError("@tool(queue_timeout=...) is for a tool with a queue; give queue=, too")
        return
    if not isinstance(queue, str) or not _QUEUE.match(queue):
        raise AgentDefinitionError(
            f"@tool(queue={queue!r}): a task queue has 1 to 200 letters, digits, '_', '-', '.', ':' or '/', "
            "and begins with a letter or digit"
        )
    if wait is not None and wait <= timedelta(0):
        raise AgentDefinitionError(f"@tool(queue_timeout={wait!r}): it must be more than nothing")
