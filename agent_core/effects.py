"""The one door from the agent to the world.

The cycle asks for effects through this port; the in-process driver and the Temporal workflow
are its two implementations. Steps find the port of the running cycle in a context variable.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from countersign.agent_core.messages import Message, Usage
from countersign.agent_core.wire import ModelCall, ModelResponse, ToolCall, ToolOutcome

if TYPE_CHECKING:
    from countersign.agent_core.steps import StepInfo


class Effects(Protocol):
    """What a cycle may ask of its surroundings."""

    def now(self) -> datetime:
        """The present moment, in UTC; deterministic where the driver is."""
        ...

    @property
    def stop_requested(self) -> bool:
        """True once a graceful stop was asked for."""
        ...

    async def call_model(self, call: ModelCall, messages: Sequence[Message]) -> ModelResponse | None:
        """Call the model.

        Returns:
            None if a stop came before its answer, which nobody waits for then.

        Raises:
            ModelError: Or another named error of `agent_core.errors`, after the driver's retries.
        """
        ...

    async def call_tools(self, calls: Sequence[ToolCall], done: Callable[[int, ToolOutcome], Awaitable[None]]) -> None:
        """Run tools side by side.

        Args:
            calls: What to run; each at most once.
            done: Awaited once per call, with its place in `calls` and its outcome, as it ends.
                Never run for two calls at a time.
        """
        ...

    async def run_step(self, step: "StepInfo", args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run a durable step and return its recorded result."""
        ...

    def guard(self, callback: str) -> "CallbackGuard":
        """A context manager around one user callback; the driver may watch it for forbidden effects."""
        ...


class CallbackGuard(Protocol):
    """Wraps one call of user code."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> bool | None: ...


current_effects: ContextVar[Effects | None] = ContextVar("countersign_effects", default=None)
"""The port of the cycle that runs in this context; None outside of cycles."""

current_spending: ContextVar[Callable[[Usage], None] | None] = ContextVar("countersign_spending", default=None)
"""Takes what a handler's own model used in the cycle that runs in this context."""


@contextmanager
def in_cycle(effects: Effects, spending: Callable[[Usage], None]) -> Iterator[None]:
    """Let what runs inside find its cycle.

    Args:
        effects: The cycle's port.
        spending: Takes what handlers' own models used.
    """
    port, takes = current_effects.set(effects), current_spending.set(spending)
    try:
        yield
    finally:
        current_effects.reset(port)
        current_spending.reset(takes)


def spend(usage: Usage | None) -> None:
    """Count what a judge or classifier used as the turn's, so that its limits hold for all models."""
    take = current_spending.get()
    if take is not None and usage is not None:
        take(usage)


on_a_worker: ContextVar[bool] = ContextVar("countersign_on_a_worker", default=False)
"""True where an agent is built or run for a worker: nothing may then happen that a workflow does not record."""
