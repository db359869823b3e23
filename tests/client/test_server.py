"""The client and the command against a real server with no worker."""

import json
import uuid

import pytest
from typer.testing import CliRunner

from countersign.agent_client.cli import app
from countersign.client import (
    AgentClient,
    ConnectionFailedError,
    SessionEndedError,
    SessionExistsError,
    SessionNotFoundError,
)


@pytest.fixture
async def agents(temporal_server):
    """An agent client on the test server."""
    return await AgentClient.connect(temporal_server)


def call(server, *words):
    """Run the command in this process."""
    return CliRunner().invoke(app, [*words, "--address", server])


async def test_an_id_in_use_is_refused_with_the_id(agents):
    """A second session never takes over the first one's id, running or ended."""
    first = await agents.start("janitor", "clean up")
    with pytest.raises(SessionExistsError, match=first.id):
        await agents.start("janitor", "clean up", session_id=first.id)
    await agents.temporal.get_workflow_handle(first.id).terminate()
    with pytest.raises(SessionExistsError, match=first.id):
        await agents.start("janitor", "clean up", session_id=first.id)


async def test_the_start_speaks_the_wire_contract(agents):
    """One dict, protocol 1, and nothing of the prompt in the summary."""
    session = await agents.start("janitor", "a secret prompt", limits={"turns": 2})
    handle = agents.temporal.get_workflow_handle(session.id)
    event = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
    (sent,) = event.input.payloads
    assert json.loads(sent.data) == {
        "protocol": 1,
        "agent": "janitor",
        "prompt": "a secret prompt",
        "lifetime": "turn",
        "resume": "each",
        "limits": {"turns": 2},
    }
    seen = await handle.describe()
    assert await seen.static_summary() == "janitor"
    assert "secret" not in (await seen.static_details() or "")


async def test_a_session_that_never_was_is_not_found(agents):
    """Whatever is asked of it."""
    session = agents.session("no-such-session")
    for request in (session.status, session.interrupts, session.result, session.stop, session.close):
        with pytest.raises(SessionNotFoundError, match="no-such-session"):
            await request()
    with pytest.raises(SessionNotFoundError):
        await session.answer(("int-1", "y"))
    with pytest.raises(SessionNotFoundError):
        await session.wait_for_questions()


async def test_a_terminated_session_says_that_it_has_ended(agents):
    """Answers, prompts and waiting all name the end."""
    session = await agents.start("janitor", "clean up")
    await agents.temporal.get_workflow_handle(session.id).terminate()
    for request in (session.answer(("int-1", "y")), session.prompt("more"), session.result()):
        with pytest.raises(SessionEndedError, match="terminated"):
            await request
    assert await session.wait_for_questions() == []


async def test_a_namespace_that_is_not_there_is_named(temporal_server):
    """A mistyped namespace is not taken for a missing session."""
    agents = await AgentClient.connect(temporal_server, namespace="nowhere")
    with pytest.raises(ConnectionFailedError, match="'nowhere'"):
        await agents.session("s").status()


async def test_nothing_waits_where_no_question_is_open(agents):
    """Also on a server that does not know the search attributes."""
    await agents.start("janitor", "clean up")
    assert [found async for found in agents.waiting("no-such-agent")] == []


def test_the_command_starts_a_session_and_prints_its_id_alone(temporal_server):
    """So that a script can catch it."""
    got = call(temporal_server, "start", "janitor", "clean up")
    assert got.exit_code == 0
    assert got.stdout.startswith("janitor-")
    assert got.stdout.count("\n") == 1


def test_the_command_refuses_an_id_in_use_with_exit_code_1(temporal_server):
    """Refused is not unreachable."""
    words = ("start", "janitor", "clean up", "--session-id", f"taken-{uuid.uuid4()}")
    assert call(temporal_server, *words).exit_code == 0
    assert call(temporal_server, *words).exit_code == 1


@pytest.mark.parametrize(
    "words", [("interrupts", "nope"), ("approve", "nope"), ("respond", "nope", "i", "y"), ("show", "nope")]
)
def test_the_command_exits_with_3_for_a_session_that_is_not_there(temporal_server, words):
    """One line on standard error."""
    got = call(temporal_server, *words)
    assert got.exit_code == 3
    assert got.stderr.startswith("error: no session 'nope'")
