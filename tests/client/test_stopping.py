"""Stopping: waited for, and told what became of questions and tools."""

import asyncio
import json
import subprocess
import sys

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.service import RPCError
from tests.client.conftest import start_bare
from tests.client.test_sessions import SOON

from countersign.agent_client.first_cycle import trouble_at_start
from countersign.agent_client.stopping import _since_stop
from countersign.agent_core.wire import MEMO_QUESTIONS, AuditEntry
from countersign.client import SessionNotFoundError

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED


async def test_a_stop_withdraws_questions_and_leaves_an_open_session_idle(served, shell):
    """It takes further prompts, and the next stop has nothing to do."""
    session = await served.start("asker", "delete a", lifetime="open")
    (question,) = await session.wait_for_questions(SOON)
    got = await shell("stop", session.id)
    assert f"withdrawn: really ({question.id})" in got.stdout
    assert "now: idle" in got.stdout
    assert "nothing to stop" in (await shell("stop", session.id)).stdout
    assert (await session.invoke("hello")).stop_reason == "end_turn"
    closed = (await shell("stop", session.id, "--close")).stdout
    assert closed == f"closed session {session.id}, which ran nothing\n  now: closed\n"
    assert "had ended already (closed)" in (await shell("stop", session.id)).stdout


async def test_a_stop_waits_for_the_tools_that_run(served, tmp_path):
    """They come to their end, and the report names them."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    stopping = asyncio.ensure_future(session.stop_and_wait())
    await until_stop_is_noted(session)
    assert not stopping.done()
    (tmp_path / "go").touch()
    report = await asyncio.wait_for(stopping, 60)
    assert (report.outcome, report.stop_reason, report.ran_on) == ("stopped", "cancelled", ["hold"])
    assert report.ended == "completed"


async def test_a_call_that_waits_for_its_queue_is_told_at_once_and_is_not_said_to_have_run(served, shell):
    """By watch, show and stop, with the queue and until when; after the stop it has never started."""
    session = await served.start("asker", "elsewhere")
    watching = asyncio.ensure_future(first_that_waits(session))
    call = (await asyncio.wait_for(watching, 60)).detail
    assert call["tool"] == "elsewhere" and call["until"] > call["since"]
    waits = f"elsewhere waits on queue '{call['task_queue']}' for a worker, until "
    assert waits in (await shell("show", session.id)).stdout
    got = await shell("stop", session.id)
    assert waits in got.stderr and "--terminate" in got.stderr
    assert "never started: elsewhere" in got.stdout
    assert "ran to its end" not in got.stdout
    assert "elsewhere never started: no worker of task queue" in (await shell("show", session.id)).stdout
    again = json.loads((await shell("show", session.id, "--json")).stdout)
    assert again["waiting_calls"] == []


async def first_that_waits(session):
    """The first event about a call that waits for a worker of its own queue."""
    async for event in session.follow():
        if event.kind == "call_waits":
            return event
    raise AssertionError("no call waited")


@pytest.mark.parametrize(
    ("outcome", "not_run", "field"),
    [
        ("result", False, "ran_on"),
        ("unknown", True, "never_started"),
        ("never_started", False, "never_started"),
        ("unknown", False, "unknown"),
        ("interrupt", False, None),
    ],
)
def test_only_a_call_with_a_result_counts_as_run(outcome, not_run, field):
    """What never started, and what may have run, is told as that."""
    lines = [
        AuditEntry(at=f"2026-01-02T03:04:0{second}.000+00:00", event=event, cycle=1, detail=said)
        for second, (event, said) in enumerate(
            [("stop", {}), ("tool_ended", {"tool": "pay", "outcome": outcome, "not_run": not_run})]
        )
    ]
    assert _since_stop(lines) == {"withdrawn": [], **({field: ["pay"]} if field else {})}


async def until_tool_runs(client, session):
    """Wait until the first cycle's tool has begun."""
    cycle = client.temporal.get_workflow_handle(f"{session.id}/cycle-1")
    await trouble_at_start(client.temporal, session, client.task_queue)
    async with asyncio.timeout(60):
        while not await _holds(cycle):
            await asyncio.sleep(0.05)


async def _holds(cycle):
    try:
        seen = (await cycle.describe()).raw_description
    except RPCError:
        return False  # it has not been started yet
    return any(call.activity_type.name == "hold" and call.state == STARTED for call in seen.pending_activities)


async def test_while_a_tool_runs_a_stop_says_what_it_waits_for(served, temporal_server, tmp_path):
    """At once, in one line, with no terminal too."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    command = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "stop", session.id]
    stopping = await asyncio.create_subprocess_exec(
        *command, "--address", temporal_server, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(60):
        told = (await stopping.stderr.readline()).decode()
        (tmp_path / "go").touch()
        out, more = await stopping.communicate()
    assert told.startswith("hold runs since 2") and not more
    assert "ran to its end: hold" in out.decode()


async def test_terminate_names_the_tool_that_it_abandons(served, shell, tmp_path):
    """It may go on, and nobody records what it does."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    got = await shell("stop", session.id, "--terminate")
    (tmp_path / "go").touch()
    assert "was running: hold; it may go on" in got.stdout


async def test_terminating_what_no_worker_ever_took_speaks_of_no_tool(unserved, shell):
    """Nothing ran."""
    session = await unserved.start("asker", "delete a")
    got = await shell("stop", session.id, "--terminate")
    assert got.stdout == f"terminated session {session.id}\n  now: terminated\n"


UNKNOWN = {
    "id": "int-3-0-0123456789abcdef",
    "name": "unknown-outcome",
    "calls": [{"tool": "deploy", "input": "{}"}],
    "reason": '{"detail":"lost","note":"The call may have run. Nobody knows.","tool":"deploy"}',
    "answers": {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}},
}


async def test_terminating_names_the_call_of_which_nobody_is_asked_any_more(unserved, shell):
    """It may have run, and its question is gone."""
    name = await start_bare(unserved.temporal, unserved.task_queue, {MEMO_QUESTIONS: [UNKNOWN]})
    told = (await shell("stop", name, "--terminate")).stdout
    assert f"withdrawn: unknown-outcome ({UNKNOWN['id']}): deploy may have run, and nobody is asked any more" in told


def test_a_stop_names_the_call_of_which_nobody_is_asked_any_more():
    """From the question that was open."""
    detail = {"question": UNKNOWN["id"], "name": "unknown-outcome"}
    lines = [
        AuditEntry(at="2026-01-02T03:04:05.000+00:00", event=event, detail=said)
        for event, said in [("stop", {}), ("question_withdrawn", detail)]
    ]
    (told,) = _since_stop(lines, [UNKNOWN])["withdrawn"]
    assert (told["tools"], told["call"]) == (["deploy"], "may have run")


async def test_show_names_the_tool_that_runs_and_since_when(served, shell, tmp_path):
    """An operator sees it before they terminate; once it has ended, nothing runs."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    (call,) = json.loads((await shell("show", session.id, "--json")).stdout)["calls"]
    assert (call["kind"], call["tool"], call["state"], call["attempt"]) == ("tool", "hold", "running", 1)
    assert "hold runs since 2" in (await shell("show", session.id)).stdout
    (tmp_path / "go").touch()
    await session.result()
    assert json.loads((await shell("show", session.id, "--json")).stdout)["calls"] == []


async def until_stop_is_noted(session):
    """Wait until the stop stands in the audit trail."""
    async with asyncio.timeout(60):
        while all(entry.event != "stop" for entry in await session.audit()):
            await asyncio.sleep(0.05)


async def test_terminate_is_the_last_resort_and_keeps_its_reason(served, shell):
    """At once; open questions are gone."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    told = json.loads((await shell("stop", session.id, "--terminate", "--reason", "it hangs", "--json")).stdout)
    assert (told["outcome"], told["status"]) == ("stopped", "terminated")
    assert [item["id"] for item in told["withdrawn"]] == [question.id]
    last = (await served.temporal.get_workflow_handle(session.id).fetch_history()).events[-1]
    assert last.workflow_execution_terminated_event_attributes.reason == "it hangs"
    shown = (await shell("show", session.id)).stdout
    assert "\n  terminated     20" in shown and "\n  reason         it hangs\n" in shown
    assert json.loads((await shell("show", session.id, "--json")).stdout)["terminated"]["reason"] == "it hangs"


async def test_without_a_worker_a_terminated_session_shows_its_reason_too(unserved, shell):
    """The server knows it."""
    session = await unserved.start("asker", "delete a")
    await session.terminate("not needed")
    assert "\n  reason         not needed\n" in (await shell("show", session.id)).stdout


async def test_only_sessions_are_terminated(served):
    """A cycle's id, or that of anybody's workflow, is no session's."""
    session = await served.start("asker", "delete a")
    await session.wait_for_questions(SOON)
    with pytest.raises(SessionNotFoundError, match="AgentCycle"):
        await served.session(f"{session.id}/cycle-1").terminate("test")
    await session.stop()


async def test_a_reason_without_terminate_is_wrong_usage(shell):
    """A graceful stop has no place for it."""
    assert "--terminate" in (await shell("stop", "s", "--reason", "x", code=2)).stderr


async def test_stopping_what_never_was_exits_with_3(shell):
    """As everywhere."""
    await shell("stop", "no-such-session", code=3)
