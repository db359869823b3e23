"""Sessions that no worker serves: said soon, with the next step, and shown as far as the server knows them."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from tests.client.conftest import start_bare

from countersign.agent_client.reading import message_count
from countersign.agent_client.similar_agents import similar_agents
from countersign.agent_client.translation import described
from countersign.agent_client.workers import last_poll, no_answer, nobody_polls
from countersign.agent_core.wire import MEMO_QUESTIONS
from countersign.client import NoReplyError, NoWorkerError, SessionHandle

CARD = {
    "id": "int-3-0-0123456789abcdef",
    "name": "really",
    "calls": [{"tool": "delete", "input": '{"path":"a"}'}],
    "reason": "for ever",
    "digest": "a" * 64,
    "answers": {"approve": "y", "deny": "n"},
    "asked_at": "2026-01-02T03:04:05+00:00",
    "deadline": None,
}


@pytest.fixture
async def left(unserved):
    """A session that waits, as a worker that is gone has left it."""
    name = await start_bare(unserved.temporal, unserved.task_queue, memo={MEMO_QUESTIONS: [CARD]})
    yield unserved.session(name)
    await unserved.temporal.get_workflow_handle(name).terminate()


async def test_a_prompt_that_nobody_has_taken_yet_says_so(left, shell):
    """To programs, too: it is sent, and whether it is taken shows when a worker runs."""
    told = json.loads((await shell("prompt", left.id, "again", "--json")).stdout)
    assert told["queued"] is False and "whether it is taken shows then" in told["warning"]
    got = await shell("prompt", left.id, "again")
    assert got.stdout == "sent\n" and "no worker answers" in got.stderr


async def test_a_prompt_without_a_reply_runs_once_if_it_is_sent_again_with_its_id(unserved, lab):
    """The first one waits for a worker, and the second one gets its outcome."""
    session = await unserved.start("asker", "hello", lifetime="open")
    impatient = SessionHandle(unserved.temporal, session.id, patience=timedelta(seconds=0.5))
    with pytest.raises(NoReplyError) as lost:
        await impatient.invoke("again")
    await asyncio.to_thread(lab.worker, "tests.client.served_agents", unserved.task_queue)
    result = await session.invoke("again", update_id=lost.value.update_id)
    status = await session.status()
    assert (result.turn, status["turn"], status["queued_prompts"]) == (2, 2, 0)
    assert await message_count(session) == 4
    await session.close()


async def test_the_server_knows_who_polls(served, unserved):
    """A worker that waits for tasks is seen; a queue that nobody polls is told apart."""
    assert await last_poll(unserved.temporal, unserved.task_queue) is None
    assert await nobody_polls(unserved.temporal, unserved.task_queue)
    await (await served.start("asker", "hello")).result()
    assert not await nobody_polls(served.temporal, served.task_queue)


async def test_who_has_not_polled_since_did_not_take_it(served):
    """A worker that was killed stays on the server's list for minutes."""
    await (await served.start("asker", "hello")).result()
    assert await nobody_polls(served.temporal, served.task_queue, datetime(2100, 1, 1, tzinfo=UTC))


async def test_a_query_without_a_worker_names_the_commands_that_start_one(left):
    """With the task queue, and long before the query's own time is over."""
    with pytest.raises(NoWorkerError) as caught:
        await left.status()
    queue = (await left.summary()).task_queue
    assert f"python -m countersign.worker --agents MODULE --task-queue {queue}" in str(caught.value)
    assert "countersign dev --agents MODULE" in str(caught.value)


@workflow.defn(name="AgentSession")
class Broken:
    """A session whose worker has a fault."""

    @workflow.run
    async def run(self, given: dict) -> None:
        """Fail the workflow task, not the workflow."""
        raise RuntimeError("a bug")


async def test_a_session_on_which_its_worker_fails_is_not_said_to_have_none(unserved, shell):
    """Starting another one would not help; the cause stands in the history."""
    temporal, queue = unserved.temporal, unserved.task_queue
    async with Worker(temporal, task_queue=queue, workflows=[Broken], workflow_runner=UnsandboxedWorkflowRunner()):
        session = await unserved.start("asker", "hello", session_id=f"{queue}-a;b")
        async with asyncio.timeout(60):
            while "fails on it" not in (said := await no_worker_says(session)):
                await asyncio.sleep(0.1)
            while "fails on session" not in (await shell("doctor", "--task-queue", queue, code=1)).stdout:
                await asyncio.sleep(0.1)
    assert f"temporal workflow show -w '{session.id}'" in said
    assert "start one" not in said
    await session.terminate("test")


async def no_worker_says(session):
    """What the error says."""
    with pytest.raises(NoWorkerError) as caught:
        await session.status()
    return str(caught.value)


async def test_a_busy_worker_is_not_said_to_be_none(served):
    """It may take the query from a queue of its own, where nobody sees whether it polls."""
    session = await served.start("asker", "hello")
    await session.result()
    seen = await described(served.temporal, session.id)
    assert "busy or gone" not in str(await no_answer(served.temporal, seen, 4))  # it has ended: that is said
    waiting = await served.start("asker", "delete a")
    told = str(await no_answer(served.temporal, await described(served.temporal, waiting.id), 4))
    assert "which is safe, did not answer within 4 s: its worker is busy or gone; ask again" in told
    assert "if no worker runs, start one with: python -m countersign.worker" in told
    await waiting.stop()


async def test_questions_are_shown_in_the_short_form(left, shell):
    """Said to be that; without commands to approve what was not shown whole."""
    got = await shell("interrupts", left.id)
    assert "no worker answers" in got.stderr
    assert "short form" in got.stderr
    assert "would run delete" in got.stdout
    assert "approve" not in got.stdout


async def test_programs_are_told_that_a_card_is_the_short_form(left, shell):
    """Its input is cut text, not the value that would run."""
    (card,) = json.loads((await shell("interrupts", left.id, "--json")).stdout)
    assert (card["id"], card["short"]) == (CARD["id"], True)


async def test_show_tells_status_and_questions_from_the_memo(left, shell):
    """No conversation and no audit, and it says so."""
    got = await shell("show", left.id)
    assert "short form" in got.stderr
    assert "waiting" in got.stdout
    assert CARD["id"] in got.stdout
    plain = json.loads((await shell("show", left.id, "--json")).stdout)
    assert (plain["short"], plain["transcript"], plain["status"]["status"]) == (True, None, "waiting")


async def test_of_an_ended_session_it_says_that_reading_needs_a_worker(unserved, shell):
    """It does not promise that the session goes on."""
    session = await unserved.start("asker", "hello")
    await session.terminate("test")
    got = await shell("show", session.id)
    assert "has ended (terminated), and reading its conversation needs a worker" in got.stderr
    assert "terminated" in got.stdout


async def test_an_approval_without_a_worker_exits_with_3(left, shell):
    """Nobody could confirm it."""
    assert "no worker answers" in (await shell("approve", left.id, code=3)).stderr


async def test_a_start_without_a_worker_succeeds_and_says_so(unserved, shell):
    """The id alone on standard output; the rest on standard error."""
    got = await shell("start", "asker", "hello", "--task-queue", unserved.task_queue)
    assert got.stdout.strip().startswith("asker-")
    assert got.stdout.count("\n") == 1
    assert f"no worker polls task queue '{unserved.task_queue}'" in got.stderr
    await unserved.session(got.stdout.strip()).terminate("test")


async def test_a_mistyped_agent_with_a_queue_of_its_own_is_told_the_similar_one_that_is_served(unserved, shell):
    """Nobody takes it, so that nobody else could say it; an agent that nobody serves is not proposed."""
    queue, temporal = f"{unserved.task_queue}-{{agent}}", unserved.temporal
    agent = f"payments-{unserved.task_queue[-8:]}"
    known = [await unserved.start(name, "hello", task_queue=queue) for name in (agent, f"{agent}s")]
    async with serving(temporal, f"{unserved.task_queue}-{agent}"):
        await until_polled(temporal, f"{unserved.task_queue}-{agent}")
        async with asyncio.timeout(60):  # a session is listed about a second after its start
            while not await similar_agents(temporal, queue, agent[1:]):
                await asyncio.sleep(0.1)
        got = await shell("start", agent[1:], "hello", "--task-queue", queue)
    wrong = got.stdout.strip()
    assert f"Did you mean '{agent}'? Then end this one with: countersign stop {wrong} --terminate" in got.stderr
    for session in (*known, unserved.session(wrong)):
        await session.terminate("test")


async def test_a_start_on_the_queue_that_workers_have_left_names_the_agents_own(unserved, shell):
    """Although the server still lists those who polled it a moment ago."""
    queue, temporal = unserved.task_queue, unserved.temporal
    async with serving(temporal, queue):
        await until_polled(temporal, queue)
    async with serving(temporal, f"{queue}-asker"):
        await until_polled(temporal, f"{queue}-asker")
        assert not await nobody_polls(temporal, queue)
        async with asyncio.timeout(60):  # who polled less than two seconds ago may be there still
            while "took it" not in (got := await shell("start", "asker", "hello", "--task-queue", queue)).stderr:
                await unserved.session(got.stdout.strip()).terminate("test")
    assert f"start it with --task-queue '{queue}-{{agent}}'" in got.stderr
    await unserved.session(got.stdout.strip()).terminate("test")


async def test_doctor_looks_at_the_queue_of_each_agent_that_has_sessions(unserved, shell):
    """Not only of those whose modules are named."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    session = await unserved.start(agent, "hello", task_queue="fleet-{agent}")
    words = ("doctor", "--task-queue", "fleet-{agent}", "--agents", "tests.client.served_agents")
    async with asyncio.timeout(60):
        while f"'fleet-{agent}'" not in (told := (await shell(*words, code=1)).stdout):
            await asyncio.sleep(0.1)
    assert "'fleet-asker'" in told
    await session.terminate("test")


def serving(temporal, queue):
    """A worker that polls a queue."""
    return Worker(temporal, task_queue=queue, workflows=[Broken], workflow_runner=UnsandboxedWorkflowRunner())


async def until_polled(temporal, queue):
    """Wait until the server knows who polls a queue."""
    async with asyncio.timeout(60):
        while await nobody_polls(temporal, queue):
            await asyncio.sleep(0.05)


async def test_a_program_finds_the_warning_in_what_it_parses(unserved, shell):
    """Not beside it."""
    got = await shell("start", "asker", "hello", "--json", "--task-queue", unserved.task_queue)
    told = json.loads(got.stdout)
    assert "no worker polls" in told["warning"]
    assert got.stderr == ""
    await unserved.session(told["session_id"]).terminate("test")


async def test_a_stop_without_a_worker_is_sent_and_takes_effect_later(left, shell):
    """Exit code 3: it has not stopped yet."""
    assert "takes effect then" in (await shell("stop", left.id, code=3)).stderr
    events = (await left._temporal.get_workflow_handle(left.id).fetch_history()).events
    assert any(event.workflow_execution_signaled_event_attributes.signal_name == "stop" for event in events)
