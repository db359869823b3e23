"""Temporal's reset, as `temporal workflow reset` and the Temporal UI ask for it."""

import uuid

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client


async def reset(client: Client, workflow_id: str, task: int) -> None:
    """Reset a workflow's latest run to one of its finished workflow tasks; 0 is the first, -1 the last."""
    handle = client.get_workflow_handle(workflow_id)
    seen = await handle.describe()
    events = (await client.get_workflow_handle(workflow_id, run_id=seen.run_id).fetch_history()).events
    done = [event.event_id for event in events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=seen.run_id),
            reason="a test",
            workflow_task_finish_event_id=done[task],
            request_id=uuid.uuid4().hex,
        )
    )
