"""Heartbeats beside long work, so that the server soon misses a worker that was lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from temporalio import activity

HEARTBEAT_S = 2.5
"""Well under the heartbeat timeouts that cycles set (10 s)."""


@contextlib.asynccontextmanager
async def heartbeats(*details: Any) -> AsyncIterator[None]:
    """Heartbeat every few seconds while the body runs.

    Args:
        *details: Sent along; a later attempt finds those of the last heartbeat.
    """

    async def beat() -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)  # first of all: most work is over by then
            activity.heartbeat(*details)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
