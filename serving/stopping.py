"""Ends workers within a bound: a tool that ignores its cancellation must not keep the process alive."""

import asyncio
from collections.abc import Sequence

from temporalio.worker import Worker

LATE_S = 5.0
"""After the grace period, in seconds: for what was cancelled then to end, and for the server to hear of it."""


async def stop_workers(workers: Sequence[Worker], grace_s: float) -> list[str] | None:
    """Shut workers down side by side: they share the grace period.

    Args:
        workers: They run.
        grace_s: What running tools get before they are cancelled.

    Returns:
        None if all of them ended. Else the types of the activities that go on although they were cancelled: nothing
        that waits for these workers ends, and only leaving the process ends them.
    """
    stopping = [asyncio.create_task(worker.shutdown()) for worker in workers]
    ended, late = await asyncio.wait(stopping, timeout=grace_s + LATE_S)
    for one in ended:
        one.result()  # a shutdown that failed is an error of this process
    return sorted({name for worker in workers for name in _running(worker)}) if late else None


def _running(worker: Worker) -> list[str]:
    """The types of the activities that a worker runs at the moment; the SDK has no public way."""
    activities = worker._activity_worker
    running = activities._running_activities.values() if activities is not None else ()
    return [one.info.activity_type for one in running if one.info is not None]
