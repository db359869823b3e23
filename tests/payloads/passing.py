"""Workflows for test_passing.py: an activity encodes a value by hand, and a child gets it as it is."""

import base64
import os
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue


@activity.defn
async def make(size: int) -> str:
    """Encode a value of that size; returns the payload's bytes in base64."""
    [payload] = await activity.client().data_converter.encode([os.urandom(size // 2).hex()])
    return base64.b64encode(payload.SerializeToString()).decode()


@activity.defn
async def measure(value: str) -> int:
    """The length of a value."""
    return len(value)


@workflow.defn(name="AgentCycle", sandboxed=False)
class Child:
    """Measures what it gets, here and in an activity."""

    @workflow.run
    async def run(self, value: str, again: RawValue) -> list[int]:
        """Take the value decoded, and raw."""
        timeout = timedelta(seconds=20)
        there = await workflow.execute_activity(measure, args=[again], start_to_close_timeout=timeout)
        return [len(value), there]


@workflow.defn(sandboxed=False)
class Parent:
    """Passes a value to its child without ever decoding it."""

    @workflow.run
    async def run(self, size: int) -> list[int]:
        """Make the value, hand it on twice."""
        made = await workflow.execute_activity(make, size, start_to_close_timeout=timedelta(seconds=20))
        reference = RawValue(Payload.FromString(base64.b64decode(made)))
        lengths: list[int] = await workflow.execute_child_workflow(
            Child.run, args=[reference, reference], id=f"{workflow.info().workflow_id}/cycle-1"
        )
        return lengths
