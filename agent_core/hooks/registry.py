"""Which callbacks listen to which events, and in which order they are called."""

import inspect
import types
import typing
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Any, NamedTuple, Protocol, runtime_checkable

from countersign.agent_core.hooks.events import AgentInitializedEvent, HookEvent

HookCallback = Callable[[Any], Awaitable[None] | None]


class HookOrder:
    """Places in the order of callbacks; lower ones are called first."""

    SDK_FIRST = -100
    INTERVENTION_OUTPUT = -90
    DEFAULT = 0
    INTERVENTION_INPUT = 90
    SDK_LAST = 100


@runtime_checkable
class HookProvider(Protocol):
    """An object that registers callbacks. Its attributes are carried from cycle to cycle."""

    def register_hooks(self, registry: "HookRegistry", **kwargs: Any) -> None:
        """Add this provider's callbacks."""
        ...


class _Entry(NamedTuple):
    order: float
    callback: HookCallback


class HookRegistry:
    """The callbacks of one agent."""

    def __init__(self) -> None:
        self._entries: dict[type[HookEvent], list[_Entry]] = {}

    def add_callback(
        self,
        event_type: type[HookEvent] | list[type[HookEvent]] | None,
        callback: HookCallback,
        *,
        order: float = HookOrder.DEFAULT,
    ) -> None:
        """Call `callback` for events of a type.

        Args:
            event_type: One type, several, or None to read it from the callback's annotation.
            callback: A sync or async function of the event.
            order: Lower ones are called first; equal ones in the order of registration, which
                After events reverse.

        Raises:
            ValueError: If the type is missing or is not an event.
        """
        if event_type is None:
            found = _annotated_types(callback)
        else:
            found = event_type if isinstance(event_type, list) else [event_type]
        if not found:
            raise ValueError("event_type list cannot be empty")
        for item in dict.fromkeys(found):
            if not (isinstance(item, type) and issubclass(item, HookEvent)):
                raise ValueError(f"Invalid event type: {item} | must be a subclass of HookEvent")
            if item is AgentInitializedEvent and inspect.iscoroutinefunction(callback):
                raise ValueError("AgentInitializedEvent can only be registered with a synchronous callback")
            entries = self._entries.setdefault(item, [])
            entries.append(_Entry(order, callback))
            entries.sort(key=lambda entry: entry.order)

    def add_hook(self, hook: HookProvider) -> None:
        """Let a provider register its callbacks."""
        hook.register_hooks(self)

    def callbacks_for(self, event: HookEvent) -> list[HookCallback]:
        """The callbacks for an event, in the order in which they are called."""
        entries = self._entries.get(type(event), [])
        if not event.should_reverse_callbacks:
            return [entry.callback for entry in entries]
        ordered: list[HookCallback] = []
        for _, group in groupby(entries, key=lambda entry: entry.order):
            ordered.extend(entry.callback for entry in reversed(list(group)))
        return ordered


def _annotated_types(callback: HookCallback) -> list[type[HookEvent]]:
    """Event types from the annotation of a callback's first parameter."""
    name = getattr(callback, "__qualname__", repr(callback))
    try:
        hints = typing.get_type_hints(callback)
    except Exception as error:
        raise ValueError(f"the annotations of {name} can't be resolved: {error}; pass the event type") from error
    parameters = [item for item in inspect.signature(callback).parameters if item != "self"]
    if not parameters or parameters[0] not in hints:
        raise ValueError(f"{name} has no annotated event parameter; annotate it or pass the event type")
    annotation = hints[parameters[0]]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return [item for item in typing.get_args(annotation) if item is not type(None)]
    return [annotation]


def callback_name(callback: HookCallback) -> str:
    """A callback's name for people: class and method, or the function's name."""
    return str(getattr(callback, "__qualname__", None) or repr(callback))
