"""Threads for tools and steps that block. The worker bounds how many run at once, by its activities."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Await blocking work. A cancellation does not wait for its thread.

    Its thread is never one of a shared number: a call that has left its mark must not wait for one.
    """
    return await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)
