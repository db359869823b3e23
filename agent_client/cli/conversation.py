"""The conversation of `chat`: prompt, watch, ask, answer, until the person leaves or the session ends."""

import asyncio
import signal
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from countersign.agent_client.answers import answer_block
from countersign.agent_client.cli import chat_view
from countersign.agent_client.cli.chat_line import InterruptedLineError, Terminal
from countersign.agent_client.cli.running import UsageError
from countersign.agent_client.cli.terminal import command, visible
from countersign.agent_client.client import AgentClient
from countersign.agent_client.errors import ConnectionFailedError, NoReplyError, NoWorkerError, SessionEndedError
from countersign.agent_client.following import Follower, Glimpse
from countersign.agent_client.session import SessionHandle
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import Question

T = TypeVar("T")

_FAST_S, _SLOW_S, _ASKING_S = 0.15, 0.5, 0.7
"""Pauses between looks: at first, after a while, and while a question is asked."""

_FAST_LOOKS = 20
_HISTORY_MESSAGES = 6
"""How many of the latest messages are shown when a session is taken up again."""

_HELP = """  /quit or Ctrl-D   leave; the session stays open
  /close            end the session and leave
  /stop             at a question: stop the turn; the question is withdrawn
  /json VALUE       at a question: answer with a JSON value
  Ctrl-C            stop the turn that runs; twice: leave"""


class LeavingError(Exception):
    """The person leaves."""


@dataclass(frozen=True)
class Wish:
    """What `chat` was asked for.

    Attributes:
        agent: The agent; "" to take that of the session.
        prompt: The first prompt; None to ask for it.
        session_id: A session to go on with; None to start one with the first prompt.
        responder: Who answers, as a claim.
        task_queue: Of the agent's workers.
        close: Whether leaving ends the session.
    """

    agent: str
    prompt: str | None
    session_id: str | None
    responder: str | None
    task_queue: str
    close: bool


class Conversation:
    """One person, one session, one terminal.

    Args:
        client: Starts or finds the session.
        wish: What was asked for.
        terminal: Where the person is.
    """

    def __init__(self, client: AgentClient, wish: Wish, terminal: Terminal) -> None:
        self._client, self._wish, self._terminal = client, wish, terminal
        self._agent, self._close = wish.agent, wish.close
        self._session: SessionHandle | None = None
        self._follower: Follower | None = None
        self._view = chat_view.Transcript()
        self._own_prompts: list[str] = []
        self._turn, self._away = 0, False
        self._interrupted, self._leaving = 0, asyncio.Event()

    async def run(self) -> None:
        """Talk until the person leaves or the session has ended."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_hang_up)
        try:
            if self._wish.session_id is not None:
                await self._take_up(self._wish.session_id)
            elif self._wish.prompt is not None:
                await self._send(self._wish.prompt)
            while True:
                if self._session is not None and await self._follow() == "closed":
                    return
                await self._next_prompt()
        except LeavingError:
            await self._leave()

    # --- Prompts ---

    async def _next_prompt(self) -> None:
        """Read lines until one is a prompt, and send it."""
        while True:
            try:
                text = (await self._typed(self._terminal.prompt("> "))).strip()
            except EOFError:
                raise LeavingError from None
            except InterruptedLineError:
                self._terminal.say("  nothing runs; Ctrl-D or /quit leaves", "dim")
                continue
            if text in ("/help", "/stop", "/json"):
                self._terminal.say(_HELP, "dim")
            elif text in ("/quit", "/exit", "/close"):
                self._close = self._close or text == "/close"
                raise LeavingError
            elif text:
                await self._send(text)
                return

    async def _typed(self, reading: Coroutine[Any, Any, T]) -> T:
        """A line, unless a signal says to leave."""
        return await self._or_leave(reading)

    async def _send(self, text: str) -> None:
        """Send a prompt; the first one starts the session."""
        self._own_prompts.append(text)
        if self._session is None:
            starting = self._client.start(self._agent, text, lifetime="open", task_queue=self._wish.task_queue)
            self._adopt(await self._busy("starting …", starting))
            self._terminal.say(f"  session {visible(self._name)}", "dim")
        else:
            await self._busy("sending …", self._session.prompt(text))
        self._turn += 1

    def _adopt(self, session: SessionHandle) -> None:
        self._session = session
        self._follower = Follower(self._client.temporal, session)

    async def _take_up(self, session_id: str) -> None:
        """Go on with a session: show how it stands."""
        self._adopt(self._client.session(session_id))
        glimpse = await self._busy("looking …", self._look())
        if glimpse.ended is not None:
            raise SessionEndedError(session_id, glimpse.ended)
        if self._agent and self._agent != glimpse.agent:
            raise UsageError(
                f"session {session_id!r} is one of agent {glimpse.agent!r}, not {self._agent!r}; leave the agent out"
            )
        self._agent, self._turn = glimpse.agent, glimpse.turn
        self._terminal.say(f"  session {visible(session_id)} of {visible(self._agent)}", "dim")
        skipped = len(glimpse.messages) - _HISTORY_MESSAGES
        if skipped > 0:
            self._terminal.say(f"  … {skipped} earlier messages: {command('show', session_id)}", "dim")
        self._show(glimpse, glimpse.messages[-_HISTORY_MESSAGES:])

    # --- Watching ---

    async def _follow(self) -> str:
        """Show what happens and ask what is asked, until the loop stands still: "idle" or "closed"."""
        while True:
            self._interrupted = 0
            glimpse = await self._busy(f"{visible(self._agent)} works … (Ctrl-C stops it)", self._until_stop())
            if not glimpse.questions:
                break
            await self._ask(glimpse.questions[0])
        self._turn = glimpse.turn
        if (end := chat_view.turn_end(glimpse.stop_reason, glimpse.error)) is not None and glimpse.turn > 0:
            self._terminal.say(f"  {end}", "yellow")
        if glimpse.word == "closed":
            self._terminal.say(f"  session {visible(self._name)} has ended ({glimpse.ended or 'closed'})", "dim")
        return glimpse.word

    async def _until_stop(self) -> Glimpse:
        """Look until something is asked, or nothing runs any more."""
        looks = 0
        while True:
            glimpse = await self._look()
            self._show(glimpse, glimpse.messages)
            begun = glimpse.turn >= self._turn
            if glimpse.questions or glimpse.word == "closed" or (glimpse.word == "idle" and begun):
                return glimpse
            looks += 1
            await asyncio.sleep(_FAST_S if looks < _FAST_LOOKS else _SLOW_S)

    async def _look(self) -> Glimpse:
        """The session as it is, as soon as somebody can say."""
        assert self._follower is not None
        while True:
            try:
                glimpse = await self._follower.look()
            except (NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)
                await asyncio.sleep(_SLOW_S)
            else:
                self._say_back()
                return glimpse

    def _say_away(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            what = "no worker answers" if isinstance(error, NoWorkerError) else "the server can't be reached"
            self._terminal.say(f"  {what}; the session is safe and goes on when it is back. Waiting …", "yellow")

    def _say_back(self) -> None:
        if self._away:
            self._away = False
            self._terminal.say("  it is back", "green")

    def _show(self, glimpse: Glimpse, messages: list[Any]) -> None:
        for message in messages:
            text = "\n".join(block.get("text", "") for block in message["content"])
            if message["role"] == "user" and text in self._own_prompts:
                self._own_prompts.remove(text)  # it stands above, where it was typed
                continue
            for line in self._view.lines(glimpse.agent, message):
                self._terminal.say(line)

    # --- Questions ---

    async def _ask(self, question: Question) -> None:
        """Ask one question; returns when it is answered, here or elsewhere, or not asked any more."""
        self._terminal.say(f"\n{chat_view.card(question, datetime.now(UTC))}", "bold")
        self._terminal.say(f"  {chat_view.offer(question)}", "dim")
        while True:
            typed = await self._typed_or_withdrawn(question)
            if typed is None:
                return
            if typed in ("/quit", "/exit", "/close"):
                self._close = self._close or typed == "/close"
                raise LeavingError
            if typed == "/stop":
                await self._busy("stopping …", self._handle.stop())
                return
            try:
                answer = chat_view.meaning(question, typed)
            except ValueError as error:
                self._terminal.say(f"  {visible(str(error))}", "yellow")
                continue
            if answer is None:
                self._terminal.say(f"  {chat_view.offer(question)}; /help", "dim")
            elif typed == "/help":
                self._terminal.say(_HELP, "dim")
            elif await self._answer(question, *answer):
                return

    async def _typed_or_withdrawn(self, question: Question) -> str | None:
        """A line; None if the question is not open any more, which is said, or the turn was stopped."""
        watching = asyncio.ensure_future(self._until_closed(question))
        typing = asyncio.ensure_future(self._typed(self._terminal.answer("answer> ")))
        try:
            await asyncio.wait({watching, typing}, return_when=asyncio.FIRST_COMPLETED)
            if typing.done():
                return (typing.result() or "").strip()
            while not typing.done():  # it may not have begun to read
                self._terminal.withdraw()
                await asyncio.wait({typing}, timeout=0.05)
            self._terminal.say(watching.result(), "yellow")
            return None
        except EOFError:
            raise LeavingError from None
        except InterruptedLineError:
            return "/stop"
        finally:
            watching.cancel()

    async def _until_closed(self, question: Question) -> str:
        """Wait until a question is not open any more; returns why, in words."""
        assert self._follower is not None
        while True:
            try:
                if not await self._follower.is_open(question):
                    return chat_view.fate(await self._follower.fate(question))
                self._say_back()
            except (NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)
            await asyncio.sleep(_ASKING_S)

    async def _answer(self, question: Question, answer: Any, verdict: str) -> bool:
        """Send an answer, bound to what was shown; False if it can be given again."""
        block = answer_block(question.id, answer, digest=question.digest, responder=self._wish.responder)
        try:
            await self._busy("sending the answer …", self._delivered(block))
        except AnswerRefused as refusal:
            self._terminal.say(f"  refused ({visible(refusal.code)}): {visible(str(refusal))}", "yellow")
            return refusal.code not in ("malformed", "not_json", "too_large")
        except ValueError as error:
            self._terminal.say(f"  not sent: {visible(str(error))}", "yellow")
            return False
        self._terminal.say(chat_view.sent(answer, verdict), "dim")
        return True

    async def _delivered(self, block: JsonObject) -> None:
        """Send until it is confirmed; the same answer counts once, however often it is sent."""
        while True:
            try:
                await self._handle.answer(block)
                self._say_back()
                return
            except (NoReplyError, NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)

    # --- Leaving, and Ctrl-C while something runs ---

    @property
    def _handle(self) -> SessionHandle:
        assert self._session is not None
        return self._session

    @property
    def _name(self) -> str:
        return self._handle.id

    def _on_interrupt(self) -> None:
        self._interrupted += 1
        if self._interrupted > 1 or self._session is None:
            self._leaving.set()
            return
        self._terminal.busy_with("stopping after the tools that run … (Ctrl-C again leaves)")
        self._stopping = asyncio.ensure_future(self._stop_quietly())

    async def _stop_quietly(self) -> None:
        try:
            await self._handle.stop()
        except Exception as error:
            self._terminal.say(f"  can't stop it: {visible(str(error))}", "yellow")

    def _on_hang_up(self) -> None:
        self._leaving.set()

    async def _busy(self, words: str, work: Coroutine[Any, Any, T]) -> T:
        with self._terminal.busy(words):
            return await self._or_leave(work)

    async def _or_leave(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, unless the person wants to leave first."""
        task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._leaving.wait())
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise LeavingError
            return task.result()
        finally:
            leaving.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def _leave(self) -> None:
        """Say how to come back, or end the session."""
        if self._session is None:
            return
        name = self._session.id
        if self._close:
            self._leaving.clear()
            await self._busy("closing …", self._session.close())
            self._terminal.say(f"session {visible(name)} is closed")
            return
        self._terminal.say(f"session {visible(name)} stays open, and so does what it asks; nothing is lost")
        self._terminal.say(f"  to come back: {command('chat', '--session', name)}")
        self._terminal.say(f"  to end it:    {command('stop', '--close', name)}")
