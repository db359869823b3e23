"""Durable steps: the way for a hook or handler to do I/O.

Awaited inside a cycle, a step runs once and its result is recorded; the driver decides how.
Outside of a cycle it is the plain function that it was.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from countersign.agent_core.effects import current_effects
from countersign.agent_core.errors import AgentDefinitionError, PayloadTooLargeError
from countersign.agent_core.json_values import JsonValue, check_json, json_size
from countersign.agent_core.wire import MAX_VALUE_BYTES

P = ParamSpec("P")
R = TypeVar("R")

STEP_MARK = "__countersign_step__"


@dataclass(frozen=True)
class StepInfo:
    """A durable step.

    Attributes:
        name: Under which a worker finds it.
        function: What it does; a sync function runs in a thread.
        timeout: The longest that one attempt may take; if it is not retried, all of them together.
        retried: Whether connection errors, timeouts and a busy model are tried again. What lost its worker always is.
    """

    name: str
    function: Callable[..., Any]
    timeout: timedelta = timedelta(minutes=1)
    retried: bool = True

    async def run(self, *args: Any) -> Any:
        """Run it as a step of the cycle that runs here; outside of one, as the function that it is."""
        effects = current_effects.get()
        if effects is not None:
            return await effects.run_step(self, args, {})
        result = self.function(*args)
        return await result if inspect.isawaitable(result) else result

    def check_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse what can't be sent to a worker.

        Raises:
            TypeError: For what is not JSON, with its place.
            PayloadTooLargeError: For too much of it.
        """
        what = f"the arguments of step {self.name}"
        check_json(list(args), what)
        check_json(dict(kwargs), what)
        _check_size([list(args), dict(kwargs)], what)

    def check_result(self, result: Any) -> None:
        """Refuse a result that no worker can send back; errors as those of `check_arguments`."""
        what = f"the result of step {self.name}"
        check_json(result, what)
        _check_size(result, what)


def _check_size(value: JsonValue, what: str) -> None:
    if (size := json_size(value)) > MAX_VALUE_BYTES:
        raise PayloadTooLargeError(what, size, MAX_VALUE_BYTES)


@overload
def step(function: Callable[P, Awaitable[R]], /) -> Callable[P, Awaitable[R]]: ...


@overload
def step(*, timeout: timedelta | None = None) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]: ...


def step(function: Any = None, /, *, timeout: timedelta | None = None) -> Any:
    """Make a durable step of an async function of an agent module.

    Its arguments and its result must be JSON. It may do any I/O, and runs again if it fails
    for want of a connection, takes too long or its worker dies, so it should be safe to repeat.
    What it raises arrives with its name and its words: Python's own errors as such, any other as
    a `CountersignError` of a class with that name. One that does not end is a `StepError`.

    Args:
        function: An async function at the top level of its module.
        timeout: The longest that one attempt may take, of five; one minute if None.

    Raises:
        AgentDefinitionError: If it is not an async function at the top level of its module.
    """

    def decorate(target: Any) -> Any:
        if not inspect.iscoroutinefunction(target):
            raise AgentDefinitionError(f"@step takes an async function, not {target!r}")
        if "<locals>" in target.__qualname__ or "." in target.__qualname__:
            raise AgentDefinitionError(
                f"step {target.__qualname__}: a step must stand at the top level of its module, "
                "so that a worker can find it by name"
            )
        name = f"{target.__module__}:{target.__qualname__}"

        @functools.wraps(target)
        async def run(*args: Any, **kwargs: Any) -> Any:
            effects = current_effects.get()
            if effects is None:
                return await target(*args, **kwargs)
            return await effects.run_step(info, args, kwargs)

        info = StepInfo(name, target, timeout or timedelta(minutes=1))
        setattr(run, STEP_MARK, info)
        return run

    return decorate if function is None else decorate(function)
