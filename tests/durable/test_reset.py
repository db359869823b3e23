"""Temporal's reset: the server sends recorded answers once more, and no call runs again on them."""

import asyncio
import uuid

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from tests.durable.test_waiting import questions


async def reset(lab, workflow_id, task):
    """Reset a workflow's latest run to one of its finished workflow tasks; 0 is the first, -1 the last."""
    events = (await lab.history_of(workflow_id)).events
    done = [event.event_id for event in events if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    temporal = await Client.connect(lab.address, data_converter=pydantic_data_converter)
    seen = await temporal.get_workflow_handle(workflow_id).describe()
    await temporal.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace="default",
            workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=seen.run_id),
            reason="a test",
            workflow_task_finish_event_id=done[task],
            request_id=uuid.uuid4().hex,
        )
    )


async def task_after_question(lab, session):
    """Which finished workflow task of a session is the one before its answer came."""
    events = (await lab.history_of(session.id)).events
    completed = 0
    for event in events:
        if event.event_type in (
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        ):
            return completed - 1
        completed += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    raise AssertionError("no answer in the history")


@pytest.mark.parametrize("channel", ["update", "signal"])
async def test_a_session_that_is_reset_runs_nothing_again_on_the_old_answer(lab, channel):
    """The recorded answer comes once more; whether the call is to run again is a new question."""
    session = await lab.start(lab.worker(), "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    send = session.answer if channel == "update" else session.respond
    await send((question.id, "y"))
    await session.result()
    assert lab.effects() == ["a"]
    await reset(lab, session.id, await task_after_question(lab, session))
    [doubt] = await unknown_outcome(session)
    assert lab.effects() == ["a"]
    await session.answer((doubt.id, "skip"))
    result = await session.result()
    assert "may or may not have run" in str(result.message)
    assert lab.effects() == ["a"]


async def unknown_outcome(session):
    """Wait until the session asks whether a call ran; approve it anew if the old answer came too early to count."""
    async with asyncio.timeout(60):
        while True:
            found = {question.name: question for question in await session.interrupts()}
            if "unknown-outcome" in found:
                return [found["unknown-outcome"]]
            if "call" in found:
                await session.answer((found["call"].id, "y"))
            await asyncio.sleep(0.05)


async def test_a_cycle_that_is_reset_runs_no_call_again(lab):
    """It may have run them before: nobody knows, so it stops there."""
    session = await lab.start(lab.worker(), "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.result()
    events = (await lab.history_of(session.id)).events
    children = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in events
        if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
    ]
    temporal = await Client.connect(lab.address, data_converter=pydantic_data_converter)
    assert len(children) > 1
    for child in children[1:]:
        await reset(lab, child, 0)
        try:
            async with asyncio.timeout(20):
                await temporal.get_workflow_handle(child).result()
        except TimeoutError:
            seen = [EventType.Name(event.event_type) for event in (await lab.history_of(child)).events]
            raise AssertionError(f"{child} did not end: {seen}") from None
    assert lab.effects() == ["a"]
