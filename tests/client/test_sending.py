"""An update is sent until its outcome is known: again when no reply came, never after a refusal."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateRPCTimeoutOrCancelledError
from tests.client.fake_temporal import FakeTemporal, lost_update, refused_update, rpc_error

from countersign.agent_client import translation
from countersign.agent_client.errors import (
    AccessDeniedError,
    ConnectionFailedError,
    NoReplyError,
    SessionEndedError,
    SessionNotFoundError,
)
from countersign.agent_client.sending import Update, deliver
from countersign.agent_client.session import SessionHandle
from countersign.agent_core.errors import AnswerRefused

PATIENT = timedelta(seconds=60)
IMPATIENT = timedelta(milliseconds=300)
ANSWER = Update("s", "answer", [1], "answer-1")


async def send(temporal, patience=PATIENT, wait_long=False):
    """Deliver the answer."""
    return await deliver(temporal, ANSWER, patience, wait_long=wait_long)


def described(status, workflow_type="AgentSession"):
    """What Temporal says of a session."""
    return SimpleNamespace(workflow_type=workflow_type, status=status, close_time=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "trouble",
    [
        lost_update(),
        lost_update("UnprocessedUpdate"),  # the server's word if a worker went away with it
        WorkflowUpdateRPCTimeoutOrCancelledError(),
        rpc_error("UNAVAILABLE"),
        rpc_error("FAILED_PRECONDITION", "Unable to perform update due to unexpected workflow task failure."),
    ],
)
@pytest.mark.parametrize("wait_long", [False, True])
async def test_without_a_reply_the_same_update_is_sent_again(trouble, wait_long):
    """The id stays, so that the session takes it once."""
    temporal = FakeTemporal(trouble, trouble, "taken")
    assert await send(temporal, wait_long=wait_long) == "taken"
    assert temporal.sent == [("answer", [1], "answer-1")] * 3


async def test_a_refusal_is_final_and_keeps_its_code():
    """What the session refused is not pressed on it."""
    temporal = FakeTemporal(refused_update("already_answered"))
    with pytest.raises(AnswerRefused) as caught:
        await send(temporal)
    assert caught.value.code == "already_answered"
    assert len(temporal.sent) == 1


async def test_a_session_that_has_ended_says_how():
    """ "Not found" is looked into, once."""
    temporal = FakeTemporal(rpc_error("NOT_FOUND"), described=described(WorkflowExecutionStatus.TERMINATED))
    with pytest.raises(SessionEndedError, match="terminated at 2026-01-01") as caught:
        await send(temporal)
    assert caught.value.status == "terminated"


async def test_a_session_between_two_runs_gets_the_update_again():
    """Continue-as-new is no end."""
    temporal = FakeTemporal(rpc_error("NOT_FOUND"), "taken", described=described(WorkflowExecutionStatus.RUNNING))
    assert await send(temporal) == "taken"


async def test_a_session_that_never_was_is_not_found():
    """The message says where it was looked for."""
    temporal = FakeTemporal(rpc_error("NOT_FOUND"), described=rpc_error("NOT_FOUND"))
    with pytest.raises(SessionNotFoundError, match="namespace 'default'"):
        await send(temporal)


BUSY = ["UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNKNOWN"]


@pytest.mark.parametrize("status", BUSY)
async def test_a_server_that_gives_no_answer_says_nothing_of_a_session(status):
    """Neither that there is none, nor that it has ended: it is asked again, as far as patience goes."""
    temporal = FakeTemporal(described=rpc_error(status))
    with pytest.raises(ConnectionFailedError, match="fake:7233"):
        await translation.described(temporal, "s")
    assert isinstance(await translation.translated(rpc_error(status), temporal), ConnectionFailedError)
    temporal = FakeTemporal(rpc_error("NOT_FOUND"), "taken", described=rpc_error(status))
    assert await send(temporal) == "taken"


async def test_a_workflow_of_another_type_is_no_session():
    """Answers go to sessions only."""
    other = described(WorkflowExecutionStatus.RUNNING, "Payroll")
    with pytest.raises(SessionNotFoundError, match="type Payroll"):
        await send(FakeTemporal(rpc_error("NOT_FOUND"), described=other))


async def test_denied_access_is_not_tried_again():
    """Credentials don't get better by waiting."""
    with pytest.raises(AccessDeniedError, match="TEMPORAL_API_KEY"):
        await send(FakeTemporal(rpc_error("PERMISSION_DENIED")))


@pytest.mark.parametrize("outcome", [None, rpc_error("UNAVAILABLE")])
async def test_patience_ends_and_says_that_the_outcome_is_unknown(outcome):
    """Neither "taken" nor "refused" is claimed."""
    with pytest.raises(NoReplyError, match="may or may not have been taken"):
        await send(FakeTemporal(*[outcome] * 5), patience=IMPATIENT)


@pytest.mark.parametrize(("name", "advice"), [("answer", "send the same again"), ("invoke", "unless .* id, id-1")])
async def test_the_advice_without_a_reply_is_safe_to_follow(name, advice):
    """An answer may be sent again; a prompt is another one, unless it has the id of the first."""
    with pytest.raises(NoReplyError, match=advice) as caught:
        await deliver(FakeTemporal(None), Update("s", name, [1], "id-1"), IMPATIENT)
    assert caught.value.update_id == "id-1"
    assert ("countersign show s" in str(caught.value)) == (name == "invoke")


async def test_the_id_to_send_a_prompt_again_with_is_the_prompts_own():
    """Also if the session has continued as new meanwhile, and what got no reply is the question how it went."""
    temporal = FakeTemporal({"moved": True, "turn": 2}, None)
    session = SessionHandle(temporal, "s", patience=IMPATIENT)
    with pytest.raises(NoReplyError, match=r"has taken this, .* id, mine") as caught:
        await session.invoke("go", update_id="mine")
    assert caught.value.update_id == "mine"
    assert [name_and_id[2] == "mine" for name_and_id in temporal.sent] == [True, False]


async def test_a_cancel_of_the_caller_stays_a_cancel():
    """Temporal's client turns it into a timeout of its own, which would be sent again."""
    temporal = FakeTemporal(None, "must not be reached")
    task = asyncio.create_task(send(temporal))
    await temporal.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(temporal.sent) == 1
