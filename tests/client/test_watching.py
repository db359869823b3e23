"""Following one session and watching them all: everything that happens, once, in order."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import sys
import termios
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client, Interceptor, OutboundInterceptor
from tests.client.test_sessions import SOON
from tests.client.test_stopping import until_tool_runs

from countersign.agent_client.fleet import changed, watched
from countersign.agent_client.reading import message_count, numbered
from countersign.client import AgentClient, SessionNotFoundError, SessionSummary

COMMAND = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()"]
SHOW_CURSOR = "\x1b[?25h"


async def kinds_until_the_end(session, on_question=None):
    """The kinds of a session's events, in order."""
    seen = []
    async with asyncio.timeout(60):
        async for event in session.follow():
            seen.append(event)
            if event.kind == "question" and on_question is not None:
                await on_question(event)
    return seen


async def test_a_followed_session_tells_messages_questions_answers_and_its_end(served):
    """Each message and each question once; who answered, and what."""
    session = await served.start("asker", "delete a")
    seen = await kinds_until_the_end(session, lambda event: session.approve(event.detail["id"], responder="ann"))
    messages = [event.detail["index"] for event in seen if event.kind == "message"]
    assert messages == [0, 1, 2, 3]
    told = [event.kind for event in seen if event.kind not in ("message", "status")]
    assert told == ["question", "answered", "ended"]
    answered = next(event.detail for event in seen if event.kind == "answered")
    assert (answered["response"], answered["responder"]) == ({"go": True}, {"id": "ann"})
    assert seen[-1].detail == {"status": "closed", "stop_reason": "end_turn", "error": None}


async def test_a_withdrawn_question_is_told(served):
    """Nobody goes on waiting for an answer that can't come."""
    session = await served.start("asker", "delete a")
    seen = await kinds_until_the_end(session, lambda event: session.stop())
    assert [event.kind for event in seen if event.kind in ("question", "withdrawn")] == ["question", "withdrawn"]
    assert seen[-1].detail["stop_reason"] == "cancelled"


async def test_a_failed_session_ends_with_its_error(served):
    """Type and text, from the workflow's result."""
    seen = await kinds_until_the_end(await served.start("asker", "fail"))
    assert seen[-1].kind == "ended"
    assert seen[-1].detail["status"] == "failed"
    assert "the model refused it" in seen[-1].detail["error"]["message"]


async def test_following_begins_with_as_many_messages_as_wanted(served):
    """Of a long conversation only the end."""
    session = await served.start("asker", "hello")
    await session.result()
    seen = [event.detail["index"] async for event in session.follow(tail=1) if event.kind == "message"]
    assert seen == [1]


async def test_what_is_said_is_told_however_much_of_the_conversation_is_cut(served):
    """Messages keep their numbers, and so do the pages of the transcript."""
    session = await served.start("forgetter", "one", lifetime="open")
    seen = []
    async with asyncio.timeout(60):
        async for event in session.follow():
            if event.kind == "message":
                seen.append((event.detail["index"], event.detail["content"][0]["text"]))
            if event.kind == "status" and event.detail["status"] == "idle" and seen:
                if len(seen) == 6:
                    break
                await session.prompt(["two", "three"][len(seen) // 2 - 1])
    said = ["one", "you said: one", "two", "you said: two", "three", "you said: three"]
    assert seen == list(enumerate(said))
    assert [message["content"][0]["text"] async for message in session.transcript()] == said[4:]
    assert [number async for number, _ in numbered(session, 5)] == [5]
    assert await message_count(session) == 6


async def test_a_worker_that_is_away_is_told_once_and_waited_for(unserved, lab):
    """Then the session goes on, and nothing is missing."""
    session = await unserved.start("asker", "hello")
    kinds = []
    async with asyncio.timeout(60):
        async for event in session.follow():
            kinds.append(event.kind)
            if kinds == ["away"]:
                await asyncio.to_thread(lab.worker, "tests.client.served_agents", unserved.task_queue)
    assert kinds[:2] == ["away", "back"]
    assert kinds.count("away") == 1
    assert kinds.count("message") == 2
    assert kinds[-1] == "ended"


async def test_a_terminated_session_ends_without_a_worker(unserved):
    """Its end is the server's to tell."""
    session = await unserved.start("asker", "hello")
    await session.terminate("test")
    assert [event.detail["status"] async for event in session.follow() if event.kind == "ended"] == ["terminated"]


async def test_a_session_that_never_was_is_not_waited_for(served):
    """A mistyped id is an error."""
    with pytest.raises(SessionNotFoundError):
        await anext(aiter(served.session("no-such-session").follow()))


class Counted(Interceptor):
    """A client of sessions that counts how often the server alone is asked of one, and no worker.

    Attributes:
        quiet: Set when that was so some times after one another.
    """

    def __init__(self, client):
        temporal = client.temporal
        converter = temporal.data_converter
        counted = Client(
            temporal.service_client, namespace=temporal.namespace, data_converter=converter, interceptors=[self]
        )
        self.session, self.looks, self.quiet = AgentClient(counted).session, 0, asyncio.Event()

    def intercept_client(self, next):
        """See temporalio."""
        return _Counting(next, self)


class _Counting(OutboundInterceptor):
    def __init__(self, next, counted):
        super().__init__(next)
        self._counted = counted

    async def describe_workflow(self, input):
        self._counted.looks += 1
        if self._counted.looks > 5:
            self._counted.quiet.set()
        return await super().describe_workflow(input)

    async def query_workflow(self, input):
        self._counted.looks = 0
        return await super().query_workflow(input)


async def test_a_worker_is_not_asked_of_a_session_that_waits(served):
    """However many follow it, for however long; and what happens then is told all the same."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    counted = Counted(served)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(kinds_until_the_end(counted.session(session.id)))
        await counted.quiet.wait()
        await session.deny(question.id)
    assert [event.kind for event in following.result() if event.kind in ("answered", "ended")] == ["answered", "ended"]


async def test_a_worker_is_not_asked_by_those_who_wait_until_something_happens(served, tmp_path):
    """A tool may run for hours, and the session's history stays as it is."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    counted = Counted(served)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(counted.session(session.id).wait_for_questions())
        await counted.quiet.wait()
        (tmp_path / "go").touch()
    assert waiting.result() == []


async def test_a_worker_that_goes_away_while_a_tool_runs_is_told(unserved, lab, tmp_path):
    """Nothing in the session's history says so: its worker is asked now and then."""
    worker = await asyncio.to_thread(lab.worker, "tests.client.served_agents", unserved.task_queue)
    session = await unserved.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(unserved, session)
    async with asyncio.timeout(60):
        async for event in session.follow():
            if event.kind == "status":
                worker.kill()
            if event.kind == "away":
                break
    await session.terminate("test")


async def test_the_command_follows_to_the_question_and_to_the_end(served, shell, temporal_server):
    """The card with its commands; then, after the answer, who gave it."""
    session = await served.start("truster", "delete a")
    asked = (await shell("watch", session.id, "--until-question")).stdout
    (question,) = await session.interrupts()
    assert f"countersign approve {session.id} {question.id} --digest {question.digest[:16]}" in asked
    words = ["watch", session.id, "--tail", "0", "--address", temporal_server]
    watching = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        await watching.stdout.readuntil(b"* waiting")  # what is so now, is told; then what comes
        await session.answer((question.id, "n: keep it"), responder="ann")
        told = (await watching.communicate())[0].decode()
    assert 'ann answered "n: keep it" to ' in told
    assert "ended: closed (end_turn)" in told


async def test_the_command_names_the_tool_that_runs_when_it_begins(served, temporal_server, tmp_path):
    """Whoever comes to a session that runs sees what it does."""
    session = await served.start("asker", f"hold {tmp_path / 'go'}")
    await until_tool_runs(served, session)
    words = ["watch", session.id, "--address", temporal_server]
    watching = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        await watching.stdout.readuntil(b"* hold runs since ")
        (tmp_path / "go").touch()
        assert await watching.wait() == 0


async def test_the_command_prints_json_lines(served, shell):
    """An object a line, each with its kind; a failed session is exit code 1."""
    session = await served.start("asker", "fail")
    got = await shell("watch", session.id, "--json", code=1)
    lines = [json.loads(line) for line in got.stdout.splitlines()]
    assert lines[-1]["event"] == "ended"
    assert lines[-1]["status"] == "failed"


class Proxy:
    """A way to a server that can be closed for a while.

    Args:
        address: Of the server.
    """

    def __init__(self, address):
        self._there = address.rsplit(":", 1)
        self._writers = []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *failure):
        self.close()

    def close(self):
        """Cut every connection, and take no other."""
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _pass_on(self, reader, writer):
        answers, requests = await asyncio.open_connection(*self._there)
        self._writers += [writer, requests]
        await asyncio.gather(_copy(reader, requests), _copy(answers, writer))


async def _copy(source, target):
    with contextlib.suppress(OSError):
        while given := await source.read(65_536):
            target.write(given)
            await target.drain()


async def test_nothing_but_json_is_on_standard_output_while_the_server_is_away(served, temporal_server):
    """Temporal's own client has words about each attempt; they stay out of it."""
    session = await served.start("asker", "delete a")
    await session.wait_for_questions(SOON)
    async with Proxy(temporal_server) as proxy:
        words = ["watch", session.id, "--json", "--address", proxy.address]
        watching = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=asyncio.subprocess.PIPE)
        kinds = []
        async with asyncio.timeout(60):
            async for line in watching.stdout:
                kinds.append(json.loads(line)["event"])
                if kinds[-1] == "status":
                    proxy.close()
                if kinds[-1] == "away":
                    break
        watching.terminate()
        await watching.wait()
    assert kinds[-2:] == ["status", "away"]
    await session.stop()


async def test_until_question_needs_a_session(shell):
    """It would never be over."""
    assert "needs SESSION" in (await shell("watch", "--until-question", code=2)).stderr


async def test_all_sessions_are_watched_line_by_line_until_ctrl_c(served, temporal_server):
    """In a pipe: a line when one waits, a line when it has ended, and 130 in the end."""
    session = await served.start("asker", "delete a", session_id=f"watched-{uuid.uuid4().hex[:8]}")
    words = ["watch", "--json", "--agent", "asker", "--address", temporal_server]
    watching = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        await until_status(watching.stdout, session.id, "waiting")
        (question,) = await session.wait_for_questions(SOON)
        await session.deny(question.id)
        await until_status(watching.stdout, session.id, "closed")
        watching.send_signal(signal.SIGINT)
        assert await watching.wait() == 130


async def test_on_a_terminal_all_sessions_are_a_live_table(unserved, temporal_server):
    """Drawn in place; Ctrl-C gives the cursor back and leaves with 130."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    session = await unserved.start(agent, "hello", session_id=f"live-{uuid.uuid4().hex[:8]}")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    words = ["watch", "--agent", agent, "--address", temporal_server]
    env = {**os.environ, "TERM": "xterm"}
    watching = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=theirs, env=env)
    os.close(theirs)
    async with asyncio.timeout(60):
        shown = await asyncio.to_thread(read_until, ours, session.id)
        watching.send_signal(signal.SIGINT)
        shown += await asyncio.to_thread(read_until, ours, SHOW_CURSOR)
        assert await watching.wait() == 130
    os.close(ours)
    assert "Ctrl-C leaves" in shown
    await session.terminate("test")


def read_until(terminal, wanted):
    """What a terminal shows until then; it blocks, and ends with an error if the other side is closed."""
    shown = ""
    while wanted not in shown:
        shown += os.read(terminal, 10_000).decode(errors="replace")
    return shown


async def until_status(lines, session_id, status):
    """Read lines until one says that."""
    async for line in lines:
        told = json.loads(line)
        if (told["session_id"], told["status"]) == (session_id, status):
            return
    raise AssertionError(f"it ended before {session_id} was {status}")


def summary(name, status, *questions):
    """A session as a list shows it."""
    cards = [{"id": question} for question in questions]
    return SessionSummary(name, "asker", status, cards, datetime(2026, 1, 2, tzinfo=UTC), None, "q")


def test_a_session_counts_as_changed_by_its_status_and_its_questions():
    """What is as it was is not told again."""
    before = {name: summary(name, "waiting", "int-1") for name in "abc"}
    now = {"a": summary("a", "waiting", "int-1"), "b": summary("b", "waiting", "int-2"), "c": summary("c", "running")}
    assert [session.session_id for session in changed(before, {**now, "d": summary("d", "idle")})] == ["b", "c", "d"]


async def test_of_many_sessions_the_newest_are_watched_and_it_says_so(unserved):
    """One that was crowded out has not ended; one that has is told."""
    agent = f"agent-{uuid.uuid4().hex[:8]}"
    first, second = [await unserved.start(agent, "x") for _ in range(2)]
    told = {}
    async with asyncio.timeout(60):
        async for view in watched(unserved.temporal, agent, timedelta(seconds=0.1), most=1):
            assert len(view.sessions) <= 1
            told.update({session.session_id: session.status for session in view.changes})
            if view.left_out and told.get(second.id) == "running":
                await second.terminate("test")
            if told.get(second.id) == "terminated" and [one.session_id for one in view.sessions] == [first.id]:
                break
    assert told == {first.id: "running", second.id: "terminated"}
    await first.terminate("test")
