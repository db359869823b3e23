"""Listing sessions: from Temporal's list alone, with or without search attributes, never through a worker."""

import asyncio
import base64
import json
import uuid
from datetime import timedelta

import pytest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from tests.client.conftest import start_bare
from tests.client.test_no_worker import CARD
from tests.client.test_sessions import SOON

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.starting import MEMO_AGENT
from countersign.agent_core.wire import MEMO_QUESTIONS
from countersign.client import AgentClient, ClientError


async def listed(client, agent, ready, **choice):
    """The sessions of an agent, by id, once the list shows what is waited for: it lags about a second."""
    async with asyncio.timeout(60):
        while True:
            found = {session.session_id: session async for session in client.sessions(agent, **choice)}
            if ready(found):
                return found
            await asyncio.sleep(0.1)


async def test_sessions_are_listed_with_status_questions_and_end(served):
    """What waits, what stands idle and what has ended can be told apart."""
    waiting = await served.start("asker", "delete a")
    (question,) = await waiting.wait_for_questions(SOON)
    idle = await served.start("asker", "hello", lifetime="open")
    done, failed = await served.start("asker", "hello"), await served.start("asker", "fail")
    expected = {waiting.id: "waiting", idle.id: "idle", done.id: "closed", failed.id: "failed"}
    found = await listed(
        served,
        "asker",
        lambda found: expected.items() <= {name: session.status for name, session in found.items()}.items(),
    )
    assert [card["id"] for card in found[waiting.id].questions] == [question.id]
    assert found[waiting.id].ended_at is None
    assert found[done.id].ended_at is not None
    assert found[done.id].task_queue == served.task_queue
    await waiting.stop()
    await idle.close()


async def test_status_and_limit_narrow_the_list(unserved):
    """Several statuses are one or the other; running ones stand first, the newest of them first."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    first, second, third = [await unserved.start(agent, "x") for _ in range(3)]
    await first.terminate("test")
    found = await listed(unserved, agent, lambda found: len(found) == 3 and found[first.id].ended)
    assert list(found) == [third.id, second.id, first.id]
    gone = await listed(unserved, agent, bool, statuses=["terminated", "failed"])
    assert list(gone) == [first.id]
    assert list(await listed(unserved, agent, bool, statuses=["running"], limit=1)) == [third.id]
    await second.terminate("test")
    await third.terminate("test")


async def test_a_status_that_no_session_has_is_refused(unserved):
    """A typing error does not look like an empty list."""
    with pytest.raises(ValueError, match=r"'wating'.*waiting"):
        _ = [found async for found in unserved.sessions(statuses=["wating"])]


async def test_the_list_works_where_search_attributes_are_not_registered(temporal_server, unserved):
    """Agent and status come from the memo then."""
    name = f"bare-{uuid.uuid4().hex[:8]}"
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    await unserved.temporal.workflow_service.register_namespace(request)
    bare = await AgentClient.connect(temporal_server, namespace=name)
    session = await soon(lambda: bare.start("asker", "x"))
    found = await listed(bare, "asker", bool, statuses=["running"])
    assert found[session.id].agent == "asker"
    assert [item async for item in bare.sessions("asker", statuses=["waiting"])] == []
    assert [item async for item in bare.waiting("asker")] == []


async def soon(request):
    """The outcome of a request that the server takes only after a moment."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await request()
            except ClientError:
                await asyncio.sleep(0.2)


async def test_the_command_lists_for_people_and_for_programs(unserved, shell):
    """Ids whole, one session a line in a pipe, and how to see more."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    sessions = [await unserved.start(agent, "x", session_id=f"{'long-' * 20}{uuid.uuid4().hex}") for _ in range(2)]
    await listed(unserved, agent, lambda found: len(found) == 2)
    shown = (await shell("list", "--agent", agent)).stdout.splitlines()
    assert len(shown) == 3
    assert shown[1].split()[:3] == [sessions[1].id, agent, "running"]
    assert "there are more" in (await shell("list", "--agent", agent, "--limit", "1")).stdout
    (one,) = json.loads((await shell("list", "--agent", agent, "--limit", "1", "--json")).stdout)
    assert (one["session_id"], one["status"], one["open_questions"]) == (sessions[1].id, "running", 0)
    assert json.loads((await shell("list", "--agent", "no-such", "--json")).stdout) == []
    assert "wating" in (await shell("list", "--status", "wating", code=2)).stderr


async def test_a_question_from_outside_cannot_steer_the_terminal(unserved, shell):
    """Names and inputs in a memo were written by models."""
    card = {"id": "int-1", "name": "\x1b[2Jevil", "calls": [{"tool": "rm\x1b[1A", "input": '{"a":"\u202e"}'}]}
    name = await start_bare(unserved.temporal, unserved.task_queue, memo={MEMO_QUESTIONS: [card]})
    async with asyncio.timeout(60):
        while name not in (shown := (await shell("interrupts")).stdout):
            await asyncio.sleep(0.1)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "rm\\u001b[1A" in shown
    await unserved.session(name).terminate("test")


@pytest.fixture
def keys(tmp_path):
    """A file with the key k1, which this process does not use by itself."""
    path = tmp_path / "keys"
    path.write_text(f"k1 {base64.b64encode(bytes(range(32))).decode()}\n")
    return path


async def test_a_session_that_cannot_be_read_hides_no_other(temporal_server, unserved, shell, keys):
    """Without its key it is listed as unreadable with the key's id, and with what the search attributes say."""
    sealed = data_converter(PayloadSettings(encryption_keys=keys))
    temporal = await Client.connect(temporal_server, data_converter=sealed)
    agent, session_id = f"agent-{uuid.uuid4().hex[:8]}", f"sealed-{uuid.uuid4().hex[:8]}"
    attributes = TypedSearchAttributes([
        SearchAttributePair(SearchAttributeKey.for_keyword("CountersignAgent"), agent),
        SearchAttributePair(SearchAttributeKey.for_keyword("CountersignStatus"), "waiting"),
        SearchAttributePair(SearchAttributeKey.for_int("CountersignPending"), 2),
    ])  # fmt: skip
    await temporal.start_workflow(
        "AgentSession", {}, id=session_id, task_queue=unserved.task_queue, memo={MEMO_QUESTIONS: [{"id": "int-1"}]},
        search_attributes=attributes,
    )  # fmt: skip
    plain = await start_bare(unserved.temporal, unserved.task_queue, {MEMO_QUESTIONS: [CARD], MEMO_AGENT: agent})
    found = await listed(unserved, agent, lambda found: len(found) == 2)
    assert (found[session_id].status, found[session_id].open_questions) == ("waiting", 2)
    assert found[plain].questions == [CARD]
    for words in (("list", "--agent", agent), ("interrupts", "--agent", agent)):
        got = await shell(*words)
        assert "unreadable, encrypted with key 'k1'" in got.stdout and plain in got.stdout
        assert "COUNTERSIGN_ENCRYPTION_KEYS" in got.stderr and "tried again" not in got.stderr
        told = {item["session_id"]: item for item in json.loads((await shell(*words, "--json")).stdout)}
        assert "'k1'" in told[session_id]["unreadable"] and told[plain]["unreadable"] is None
    said = (await shell("show", session_id, code=1)).stderr
    assert "COUNTERSIGN_ENCRYPTION_KEYS" in said and "tried again" not in said
    for name in (session_id, plain):
        await temporal.get_workflow_handle(name).terminate("test")
