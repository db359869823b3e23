"""How the floor and the peer are served: a worker of one task queue, with the settings that ours has.

The SDK's defaults would give them other bounds than our worker sets for itself; with the same ones, what differs is
what runs on the worker.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

STICKY_TIMEOUT = timedelta(seconds=1.5)
WORKFLOW_TASKS = min(16, max(4, 2 * len(os.sched_getaffinity(0))))
ACTIVITIES = 100


def serve(task_queue: str, workflows: list[type], activities: list[Callable[..., Any]], **options: Any) -> None:
    """Parse `--address` and `--max-cached-workflows`, serve until SIGTERM.

    Args:
        task_queue: The queue.
        workflows: Workflow classes.
        activities: Activity functions.
        **options: More for `Worker`.
    """
    parser = argparse.ArgumentParser(description=f"Serve the task queue {task_queue}.")
    parser.add_argument("--address", required=True, help="host:port of the Temporal server")
    parser.add_argument("--max-cached-workflows", type=int, default=500)
    given = parser.parse_args()

    async def run() -> None:
        client = await Client.connect(given.address, plugins=options.pop("client_plugins", []))
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        async with Worker(
            client,
            task_queue=task_queue,
            workflows=workflows,
            activities=activities,
            max_concurrent_workflow_tasks=WORKFLOW_TASKS,
            max_concurrent_activities=ACTIVITIES,
            max_cached_workflows=given.max_cached_workflows,
            sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
            **options,
        ):
            print(f"{task_queue} worker ready", file=sys.stderr, flush=True)
            await stop.wait()

    asyncio.run(run())
