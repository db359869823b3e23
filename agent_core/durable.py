"""`@durable`: names an agent factory, so that a worker can serve it.

There is no global list: the decorator leaves a mark on the factory, and whoever loads a module
looks for marks. So a policed second copy of a module can't disturb the first.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from countersign.agent_core.errors import AgentDefinitionError

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

_MARK = "__countersign_agent__"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$")

F = TypeVar("F", bound="Callable[[], Agent]")


def durable(name: str) -> "Callable[[F], F]":
    """Register an agent factory under a name.

    The factory is called anew for every run, so that hooks and handlers start fresh. It must be
    cheap and do no I/O.

    Args:
        name: 1 to 100 letters, digits, "_", "-" or "."; unique among the agents of a worker.

    Raises:
        AgentDefinitionError: For another name, or for what is not a function without arguments.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise AgentDefinitionError(f"agent name {name!r}: use 1 to 100 letters, digits, '_', '-' or '.'")

    def mark(factory: F) -> F:
        if not inspect.isfunction(factory) or inspect.iscoroutinefunction(factory):
            raise AgentDefinitionError(
                f"@durable({name!r}) takes a plain function that returns an Agent, not {factory!r}"
            )
        setattr(factory, _MARK, name)
        return factory

    return mark


def durable_agents(module: ModuleType) -> "dict[str, Callable[[], Agent]]":
    """The factories that a module registers, by name.

    Raises:
        AgentDefinitionError: If it registers none, or two under one name.
    """
    found: dict[str, Callable[[], Agent]] = {}
    for name, value in marked_factories(module):
        if name in found and found[name] is not value:
            raise AgentDefinitionError(f"module {module.__name__} registers two agents as {name!r}")
        found[name] = value
    if not found:
        raise AgentDefinitionError(
            f'module {module.__name__} registers no agent; decorate a factory with @durable("some-name")'
        )
    return found


def marked_factories(module: ModuleType) -> "Iterator[tuple[str, Callable[[], Agent]]]":
    """Each factory that a module registers, with its name; nothing is checked."""
    for value in list(vars(module).values()):
        name = getattr(value, _MARK, None) if inspect.isfunction(value) else None
        if name is not None:
            yield name, value
