"""What the parameters of a function under `@tool` may be, as far as that shows before its schema is built."""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_args

from countersign.agent_core.errors import AgentDefinitionError

_CONTEXT = re.compile(r"(Optional\[)?(\w+\.)*ToolContext\b")
"""The context in an annotation that is text; its module may be annotated so as a whole."""


def check_parameters(function: Callable[..., Any], name: str, context: str | None) -> None:
    """Refuse parameters that nobody fills in, when the function is decorated and not when its first call comes.

    Args:
        function: The function, or what a decorator made of it.
        name: The tool's name.
        context: The parameter that gets the context; None if none does.

    Raises:
        AgentDefinitionError: Naming the parameter, and the way out.
    """
    parameters = inspect.signature(function).parameters
    if context and context not in parameters:
        raise AgentDefinitionError(f"tool {name}: declared with context, but has no parameter {context!r}")
    for parameter in parameters.values():
        refuse_nameless(parameter, name, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        if parameter.name == context or not _is_context(parameter):
            continue
        if context:
            raise AgentDefinitionError(
                f"tool {name}: the context goes into {context!r}, so parameter {parameter.name} would be for the model "
                "to fill in, which it can't; take it out"
            )
        wanted = "True" if parameter.name == "tool_context" else repr(parameter.name)
        raise AgentDefinitionError(
            f"tool {name}: parameter {parameter.name} gets the context only from @tool(context={wanted})"
        )


def refuse_nameless(parameter: inspect.Parameter, tool: str, *kinds: Any) -> None:
    """Refuse a parameter of one of some kinds.

    Raises:
        AgentDefinitionError: Naming it.
    """
    if parameter.kind in kinds:
        raise AgentDefinitionError(
            f"tool {tool}: parameter {parameter.name} is {parameter.kind.description}; "
            "a model can only fill in named parameters"
        )


def _is_context(parameter: inspect.Parameter) -> bool:
    """True for a parameter that can only be meant for a `ToolContext`: ours, or that of Strands."""
    annotation = parameter.annotation
    if parameter.name == "tool_context":
        return True
    if isinstance(annotation, str):
        return _CONTEXT.match(annotation) is not None
    return any(getattr(item, "__name__", "") == "ToolContext" for item in (annotation, *get_args(annotation)))
