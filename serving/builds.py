"""Looks, now and then, for cycles that wait for a build whose workers are gone. Only if builds are versioned."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.service import RPCError

from countersign.agent_client.builds import lost_builds
from countersign.serving.shares import Share

LOOK_S = 60.0
"""Between two looks."""


@asynccontextmanager
async def watching(client: Client, shares: Sequence[Share], say: Callable[[str], None]) -> AsyncIterator[None]:
    """Watch while the context lasts.

    Args:
        client: A connected client.
        shares: What this process serves.
        say: Called with a line for each lost build, once, and again if it comes back and is lost anew.
    """
    task = asyncio.create_task(_watch(client, shares, say))
    try:
        yield
    finally:
        task.cancel()


async def _watch(client: Client, shares: Sequence[Share], say: Callable[[str], None]) -> None:
    said: set[tuple[str, str]] = set()
    while True:
        seen: set[tuple[str, str]] = set()
        for share in shares:
            try:
                lost = await lost_builds(client, share.task_queue)
            except RPCError:
                continue  # the server is away or does not let us look: `countersign doctor` says so
            for build in lost:
                seen.add((share.task_queue, build.version))
                if (share.task_queue, build.version) not in said:
                    say(f"{build.words()}; {build.advice(client.namespace, share.task_queue)}")
        said = seen
        await asyncio.sleep(LOOK_S)
