"""Temporal's reset, as `temporal workflow reset` and the Temporal UI ask for it."""

import asyncio
import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client


async def reset(client: Client, workflow_id: str, task: int) -> None:
    """Reset a workflow's latest run to one of its finished workflow tasks; 0 is the first, -1 the last."""
    run, done = "", list[int]()
    async with asyncio.timeout(30):
        while not done:  # it may have been continued as new just now
            run = (await client.get_workflow_handle(workflow_id).describe()).run_id
            events = client.get_workflow_handle(workflow_id, run_id=run).fetch_history_events()
            done = [event.event_id async for event in events if event.event_type == TASK_COMPLETED]
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=run),
            reason="a test",
            workflow_task_finish_event_id=done[task],
            request_id=uuid.uuid4().hex,
        )
    )


TASK_COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
