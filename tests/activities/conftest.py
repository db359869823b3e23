"""Workers in this process, for activities that need a real server but no crash."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.worker import Worker
from tests.activities.calls import PassesOn

from countersign.activities import heartbeats
from countersign.activities.registry import activities_for
from countersign.activities.segments import Segments


class Queue:
    """A task queue of its own: starts workers and calls."""

    def __init__(self, client: Any) -> None:
        self.client, self.name = client, f"activities-{uuid.uuid4().hex[:8]}"

    def worker(self, deployments: Any) -> Worker:
        """A worker that serves these agents; use it as an async context manager."""
        return Worker(
            self.client,
            task_queue=self.name,
            workflows=[PassesOn],
            activities=activities_for(deployments, self.name, Segments()),
            graceful_shutdown_timeout=timedelta(milliseconds=200),
            max_heartbeat_throttle_interval=timedelta(seconds=heartbeats.HEARTBEAT_S),  # as our workers have it
        )

    async def start(self, kind: str, *arguments: Any, heartbeat_s: float = 10.0) -> WorkflowHandle[Any, Any]:
        """Call an activity through a workflow; after so long without a heartbeat its worker counts as lost."""
        given = [kind, list(arguments), heartbeat_s]
        return await self.client.start_workflow(
            "PassesOn", args=given, id=f"pass-{uuid.uuid4().hex[:8]}", task_queue=self.name
        )


@pytest.fixture
def queue(client: Any) -> Queue:
    """See `Queue`."""
    return Queue(client)
