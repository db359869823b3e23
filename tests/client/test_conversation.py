"""A conversation without a terminal: what it says, asks and sends, with a real session at the other end."""

import asyncio
import uuid

import pytest
from tests.client.fake_terminal import CTRL_D, FakeTerminal
from tests.client.test_sessions import SOON

from countersign.agent_client.cli import conversation
from countersign.agent_client.cli.chat_wish import Wish
from countersign.agent_client.cli.conversation import Conversation
from countersign.agent_client.errors import ConnectionFailedError, NoWorkerError, SessionEndedError
from countersign.agent_client.events import followed
from countersign.agent_client.session import SessionHandle


async def talk(client, wish, terminal):
    """Talk until the person leaves."""
    async with asyncio.timeout(60):
        await Conversation(client, wish, terminal).run()


def wished(client, **fields):
    """A chat with the asker."""
    return Wish(**{"agent": "asker", "task_queue": client.task_queue, **fields})


async def test_prompt_question_answer_and_the_way_back(served):
    """The typed prompt is not shown again; leaving says how to come back."""
    terminal = FakeTerminal("y", "hello", CTRL_D)
    await talk(served, wished(served, prompt="delete a"), terminal)
    shown = terminal.shown()
    assert terminal.asked == ["answer> ", "you> ", "you> "]
    assert "deleted a" in shown and "you said: hello" in shown and "delete a\n" not in shown
    assert terminal.said[-2].startswith("  to come back: countersign chat --session asker-")


async def test_what_follows_the_first_of_two_questions_is_asked_too(served):
    """Each has its own answer; nothing is asked twice."""
    terminal = FakeTerminal("y", "n", "/close")
    await talk(served, wished(served, prompt="delete a b"), terminal)
    assert terminal.asked == ["answer> ", "answer> ", "you> "]
    assert "deleted a; refused: {'go': False}" in terminal.shown()
    assert terminal.said.count("asker") == 1  # once it spoke; its calls say that they are its
    assert terminal.said[-1].endswith("is closed")


async def test_an_answer_from_elsewhere_withdraws_the_line(served):
    """And says whose it was."""
    session = await served.start("asker", "delete a", lifetime="open")
    (question,) = await session.wait_for_questions(SOON)
    terminal = FakeTerminal()
    talking = asyncio.ensure_future(talk(served, wished(served, session_id=session.id), terminal))
    await until(lambda: terminal.asked == ["answer> "], talking)
    await session.approve(question.id, responder="bob")
    await until(lambda: "you> " in terminal.asked, talking)
    terminal.type(CTRL_D)
    await talking
    assert terminal.withdrawn == 1
    assert 'bob answered {"go": true} to really' in terminal.shown()
    await session.close()


async def test_a_refused_answer_can_be_given_again(served):
    """The question is still there."""
    terminal = FakeTerminal("/json {", "x" * 1_000_000, "y", "/close")
    await talk(served, wished(served, prompt="delete a"), terminal)
    assert sum("not sent: " in text or "refused (" in text for text in terminal.said) == 2
    assert "deleted a" in terminal.shown()


async def test_a_session_is_taken_up_with_its_latest_messages(served):
    """What was left out is counted; a session that has ended is none to talk to."""
    session = await served.start("asker", "one", lifetime="open")
    for word in ("two", "three", "four"):
        await session.invoke(word)
    terminal = FakeTerminal("/close")
    await talk(served, wished(served, agent="", session_id=session.id), terminal)
    assert f"2 earlier messages: countersign show {session.id}" in terminal.shown()
    assert "you said: two" in terminal.shown() and "you said: one" not in terminal.shown()
    with pytest.raises(SessionEndedError, match="completed"):
        await talk(served, wished(served, session_id=session.id), FakeTerminal())


class Wavering(SessionHandle):
    """A session whose worker is gone whenever its questions are asked for, so many times."""

    times = 0

    async def interrupts(self):
        """Nobody answers, and then somebody does."""
        if self.times:
            self.times -= 1
            raise NoWorkerError("no worker answers")
        return await super().interrupts()


async def test_an_outage_between_two_queries_loses_no_message(served):
    """What was read before it is told after it, once."""
    session = await served.start("asker", "hello", lifetime="open")
    await session.wait_for_questions(SOON)
    wavering = Wavering(served.temporal, session.id)
    wavering.times = 1
    kinds = []
    async with asyncio.timeout(60):
        async for event in followed(served.temporal, wavering, None):
            kinds.append(event.kind)
            if event.kind == "status":
                break
    assert kinds == ["away", "back", "message", "message", "status"]
    await session.close()


async def test_an_outage_is_told_once_and_the_chat_goes_on(served, monkeypatch):
    """With everything that was said meanwhile."""
    wavering = Wavering(served.temporal, f"wavering-{uuid.uuid4().hex[:8]}")
    wavering.times = 2
    monkeypatch.setattr(served, "session", lambda session_id: wavering)
    monkeypatch.setattr(conversation, "new_session_id", lambda agent: wavering.id)
    terminal = FakeTerminal("/close")
    await talk(served, wished(served, prompt="hello"), terminal)
    told = [text.strip() for text in terminal.said if text.startswith("  *")]
    assert told == ["* no worker answers; waiting", "* it answers again"]
    assert "you said: hello" in terminal.shown()


async def test_a_prompt_that_is_not_taken_is_said_and_can_be_sent_again(served):
    """Somebody else's turn asks meanwhile: that question comes first, and nothing is dropped in silence."""
    session = await served.start("asker", "hello", lifetime="open")
    await session.wait_for_questions(SOON)
    terminal = FakeTerminal()
    talking = asyncio.ensure_future(talk(served, wished(served, session_id=session.id), terminal))
    await until(lambda: terminal.asked == ["you> "], talking)
    await session.prompt("delete a")
    await session.wait_for_questions(SOON)
    terminal.type("important")
    await until(lambda: "answer> " in terminal.asked, talking)
    assert "not sent (interrupted)" in terminal.shown()
    terminal.type("y", "important", "/close")
    await talking
    assert "deleted a" in terminal.shown() and "you said: important" in terminal.shown()
    assert "refused" not in [line.event for line in await session.audit()]


class Unreachable(SessionHandle):
    """A session whose server is away whenever something is sent."""

    async def prompt(self, content):
        """Lost on its way."""
        raise ConnectionFailedError("the server is away")

    async def stop(self):
        """Lost on its way."""
        await self.prompt("")


async def test_a_server_that_is_away_when_something_is_sent_does_not_end_the_chat(served, monkeypatch):
    """It is said, and the person decides."""
    session = await served.start("asker", "hello", lifetime="open")
    await session.wait_for_questions(SOON)
    monkeypatch.setattr(served, "session", lambda session_id: Unreachable(served.temporal, session_id))
    terminal = FakeTerminal("important", CTRL_D)
    await talk(served, wished(served, session_id=session.id), terminal)
    assert "may not have been sent: the server is away" in terminal.shown()
    await session.prompt("delete a")
    await session.wait_for_questions(SOON)
    terminal = FakeTerminal("/stop", "y", CTRL_D)
    await talk(served, wished(served, session_id=session.id), terminal)
    assert "can't stop it: the server is away" in terminal.shown() and "deleted a" in terminal.shown()
    await session.close()


async def test_a_chat_that_fails_says_how_to_come_back(served, monkeypatch):
    """The session is still there."""
    session = await served.start("asker", "hello", lifetime="open")
    await session.wait_for_questions(SOON)

    async def closed(label):
        raise OSError("the terminal is broken")

    terminal = FakeTerminal()
    monkeypatch.setattr(terminal, "prompt", closed)
    with pytest.raises(OSError, match="broken"):
        await talk(served, wished(served, session_id=session.id), terminal)
    assert f"to come back: countersign chat --session {session.id}" in terminal.shown()
    await session.close()


async def until(condition, talking):
    """Poll for a condition while the conversation goes on."""
    async with asyncio.timeout(60):
        while not condition():
            assert not talking.done(), talking
            await asyncio.sleep(0.05)
