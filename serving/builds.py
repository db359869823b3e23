"""Looks, now and then, for cycles that wait for a lost build, and whether this one became current.

Only if builds are versioned.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from temporalio.client import Client
from temporalio.service import RPCError

from countersign.agent_client.builds import lost_builds
from countersign.agent_client.sending import backoff_s, paused
from countersign.agent_client.workers import Build, polled
from countersign.serving.shares import Share

LOOK_S = 60.0
"""Between two looks."""

PROMOTED_S = 1.0
"""Between the first looks whether a build became current; then they get rarer."""

logger = logging.getLogger(__name__)


@asynccontextmanager
async def watching(
    client: Client, shares: Sequence[Share], say: Callable[[str], None], waiting: Build | None = None
) -> AsyncIterator[None]:
    """Watch while the context lasts.

    Args:
        client: A connected client.
        shares: What this process serves.
        say: Called with a line for each lost build, once, and again if it comes back and is lost anew; and with
            one when `waiting` has become current.
        waiting: This process's build, if it was not the current one at its start.
    """
    tasks = [asyncio.create_task(_watch(client, shares, say))]
    if waiting is not None:
        tasks.append(asyncio.create_task(_until_current(client, shares[0].task_queue, waiting, say)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_current(client: Client, task_queue: str, build: Build, say: Callable[[str], None]) -> None:
    """Say, once, that a build gets the work of a queue."""
    async for _ in paused(backoff_s(PROMOTED_S, LOOK_S)):
        with suppress(RPCError):  # the server is away, or does not let us look
            if (await polled(client, task_queue)).current == build:
                say(f"build {build.build_id} is now the current one of deployment {build.deployment}")
                return


async def _watch(client: Client, shares: Sequence[Share], say: Callable[[str], None]) -> None:
    said: set[tuple[str, str]] = set()
    while True:
        seen: set[tuple[str, str]] = set()
        for share in shares:
            queue = share.task_queue
            try:
                lost = await lost_builds(client, queue)
            except Exception as error:  # whatever it is: the worker serves on, and the next look may succeed
                seen |= {known for known in said if known[0] == queue}
                # The server is away, or does not let us look: `countersign doctor` says so.
                level = logging.DEBUG if isinstance(error, RPCError) else logging.WARNING
                logger.log(level, "can't look for lost builds of %s | %s: %s", queue, type(error).__name__, error)
                continue
            for build in lost:
                seen.add((queue, build.version))
                if (queue, build.version) not in said:
                    say(f"{build.words()}; {build.advice(client.namespace, queue)}")
        said = seen
        await asyncio.sleep(LOOK_S)
