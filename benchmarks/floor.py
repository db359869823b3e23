"""The floor: a bare Temporal workflow that does an agent's two activities a cycle and nothing else.

It keeps no conversation, asks nobody and has no hooks. It runs in Temporal's sandbox and on a worker
with the SDK's defaults, like any workflow.

python -m benchmarks.floor --address HOST:PORT
"""

import argparse
import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

TASK_QUEUE = "bench-floor"
TIMEOUT = timedelta(seconds=30)


@activity.defn
async def model(call: int) -> dict[str, int]:
    """Stand for a model call."""
    return {"number": call}


@activity.defn
async def count(asked: dict[str, int]) -> int:
    """Stand for a tool call."""
    return asked["number"] + 1


@workflow.defn
class Floor:
    """As many cycles of two activities as it is told, and one more model call, as at the end of a turn."""

    @workflow.run
    async def run(self, cycles: int) -> int:
        """Return the number of cycles."""
        done = 0
        for call in range(cycles):
            asked = await workflow.execute_activity(model, call, start_to_close_timeout=TIMEOUT)
            done = await workflow.execute_activity(count, asked, start_to_close_timeout=TIMEOUT)
        await workflow.execute_activity(model, cycles, start_to_close_timeout=TIMEOUT)
        return done


async def _serve(address: str) -> None:
    client = await Client.connect(address)
    async with Worker(client, task_queue=TASK_QUEUE, workflows=[Floor], activities=[model, count]):
        print("floor worker ready", file=sys.stderr, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floor", description="Serve the floor's workflow.")
    parser.add_argument("--address", required=True, help="host:port of the Temporal server")
    asyncio.run(_serve(parser.parse_args().address))
