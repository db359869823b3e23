"""Sessions that are paused in Temporal: they cost the others nothing, and say what to do."""

import uuid

import pytest
from temporalio.api.workflowservice.v1 import PauseWorkflowExecutionRequest
from tests.client.conftest import start_bare
from tests.client.test_no_worker import CARD

from countersign.agent_client.dev_server import SETTINGS, DevServer
from countersign.agent_core.wire import MEMO_QUESTIONS
from countersign.client import AgentClient, NoWorkerError


async def test_a_paused_session_is_listed_with_the_others_and_says_how_it_goes_on():
    """Its question, too."""
    async with DevServer(settings={**SETTINGS, "frontend.WorkflowPauseEnabled": "true"}) as server:
        client = await AgentClient.connect(server.address)
        queue = f"nobody-{uuid.uuid4().hex[:8]}"
        paused, other = [await start_bare(client.temporal, queue, {MEMO_QUESTIONS: [CARD]}) for _ in range(2)]
        await client.temporal.workflow_service.pause_workflow_execution(
            PauseWorkflowExecutionRequest(namespace="default", workflow_id=paused, request_id="1")
        )
        found = {}
        while set(found) != {paused, other}:
            found = {session.session_id: session async for session in client.waiting()}
        assert [session.open_questions for session in found.values()] == [1, 1]
        assert (await client.session(paused).summary()).ended is False
        with pytest.raises(NoWorkerError, match=f"paused.*temporal workflow unpause -w {paused}"):
            await client.session(paused).status()
