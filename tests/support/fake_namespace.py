"""A stand-in for Temporal's client in a namespace that holds what a test puts there."""

from collections.abc import AsyncIterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.taskqueue.v1 import PollerInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import WorkflowExecutionCount
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

_VERSION = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")


class FakeNamespace:
    """Whatever is asked for, the same workflows and pollers are there.

    Attributes:
        pollers: Who asks for work, on every queue.
        workflows: What every list has.
    """

    namespace = "default"

    def __init__(self) -> None:
        self.pollers: list[PollerInfo] = []
        self.workflows: list[Any] = []
        self.workflow_service = self

    async def describe_task_queue(self, request: DescribeTaskQueueRequest, timeout: object) -> Any:
        """Of the workflow service."""
        return DescribeTaskQueueResponse(pollers=self.pollers)

    async def count_workflows(self, query: str) -> WorkflowExecutionCount:
        """See the client."""
        return WorkflowExecutionCount(count=len(self.workflows), groups=[])

    async def list_workflows(self, query: str, limit: int) -> AsyncIterator[Any]:
        """See the client."""
        for workflow in self.workflows[:limit]:
            yield workflow


def pinned(workflow_id: str, version: str) -> Any:
    """A workflow of a list, pinned to a build."""
    attributes = TypedSearchAttributes([SearchAttributePair(_VERSION, version)])
    return SimpleNamespace(id=workflow_id, typed_search_attributes=attributes)


def poller(deployment: str, build_id: str, last_seen: datetime) -> PollerInfo:
    """A worker of a build."""
    found = PollerInfo(
        identity="1@host",
        deployment_options=WorkerDeploymentOptions(deployment_name=deployment, build_id=build_id),
    )
    found.last_access_time.FromDatetime(last_seen)
    return found
