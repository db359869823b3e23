"""Starts that would wedge or mislead a session are refused by name, and fail it at once."""

import asyncio
import json
import uuid

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from tests.durable.test_waiting import questions


async def start(client, worker, session_id=None, **argument):
    """Start a session with plain JSON, as a program without our client would."""
    session_id = session_id or f"opening-{uuid.uuid4().hex[:8]}"
    payload = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(argument).encode())
    await client.workflow_service.start_workflow_execution(
        StartWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_id=session_id,
            workflow_type=WorkflowType(name="AgentSession"),
            task_queue=TaskQueue(name=worker.queue),
            request_id=uuid.uuid4().hex,
            input=Payloads(payloads=[payload]),
        )
    )
    return client.get_workflow_handle(session_id)


async def refusal(handle) -> str:
    """The words with which a session fails to start."""
    with pytest.raises(WorkflowFailureError) as failed:
        async with asyncio.timeout(60):
            await handle.result()
    assert isinstance(failed.value.cause, ApplicationError) and failed.value.cause.type == "InvalidStart"
    return str(failed.value.cause)


BAD = [
    ({"idle_timeout_s": 1e300}, "idle_timeout_s"),
    ({"idle_timeout_s": 1e12}, "idle_timeout_s"),
    ({"cycle_overrun_s": 1e300}, "cycle_overrun_s"),
    ({"deadline_s": 1e300}, "deadline_s"),
    ({"approval_ttl_s": float("inf")}, "approval_ttl_s"),
    ({"invocation_state": {"share": float("nan")}}, "invocation_state.share"),
    ({"agent": "a" * 3000}, "agent is 3000 bytes"),
    ({"limits": {"turn": 3}}, "there is no limit 'turn'; the limits are turns, total_tokens, output_tokens"),
    ({"protocol": 2}, "protocol 2 is not spoken here; this worker speaks 1"),
]


@pytest.mark.parametrize(("option", "named"), BAD)
async def test_what_no_timer_or_attribute_holds_is_refused_by_name(lab, client, option, named):
    """Endless durations, numbers that are not JSON and endless names fail the start; no workflow task fails."""
    worker = lab.worker()
    handle = await start(client, worker, **{"agent": "free", "prompt": "hi", **option})
    assert named in await refusal(handle)


async def test_an_id_that_leaves_no_room_for_its_cycles_is_refused(lab, client):
    """The server takes ids of 1,000 bytes; a cycle's is longer than its session's."""
    worker = lab.worker()
    handle = await start(client, worker, uuid.uuid4().hex + "i" * 967, agent="free", prompt="hi")
    assert "workflow id is 999 bytes" in await refusal(handle)


async def test_a_carried_state_is_taken_from_the_server_only(lab, client):
    """Whoever may start workflows can't open a session in which a call counts as approved already."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
    await questions(session, 1)
    asked = client.get_workflow_handle(session.id)
    run_id = (await asked.describe()).run_id
    outcome = await client.get_workflow_handle(f"{session.id}/cycle-1").result()
    await asked.terminate()
    for question in outcome["pending"]["questions"]:
        question |= {"status": "answered", "answer": {"response": "y", "responder": {"id": "ceo"}}}
    forged = {
        "session_id": session.id, "agent": "per-call", "run": run_id, "status": "waiting", "turn": 1, "cycle": 1,
        "tail": outcome["messages"], "pending": outcome["pending"], "resume_due": True,
    }  # fmt: skip
    assert "continued" in await refusal(await start(client, worker, session.id, continued=forged))
    assert lab.effects() == []
