"""The far end of `chat`: a session that is looked at and answered however long its worker is away, and Ctrl-C."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from countersign.agent_client.cli.chat_line import Terminal
from countersign.agent_client.client import AgentClient
from countersign.agent_client.errors import ConnectionFailedError, NoReplyError, NoWorkerError
from countersign.agent_client.following import Follower, Glimpse
from countersign.agent_client.session import SessionHandle
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.visible import visible
from countersign.agent_core.wire import Question

T = TypeVar("T")

_RETRY_S, _ASKING_S = 0.5, 0.7
"""Pauses between looks: while nobody answers, and while a question is asked."""


class LeavingError(Exception):
    """The person leaves."""


class Link:
    """One session, as a terminal talks to it.

    Args:
        client: A connected client.
        session_id: The session; it may have to be started still.
        terminal: Where the person is told what is wrong.
    """

    def __init__(self, client: AgentClient, session_id: str, terminal: Terminal) -> None:
        self.session: SessionHandle = client.session(session_id)
        self._terminal = terminal
        self._follower = Follower(client.temporal, self.session)
        self._away = False
        self._interrupts, self._leaving = 0, asyncio.Event()
        self._stopping: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        """The session's id, to be shown."""
        return visible(self.session.id)

    # --- Looking and answering, for as long as it takes ---

    async def look(self) -> Glimpse:
        """The session as it is, as soon as somebody can say."""
        while True:
            try:
                glimpse = await self._follower.look()
            except (NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)
                await asyncio.sleep(_RETRY_S)
            else:
                self._say_back()
                return glimpse

    async def until_closed(self, question: Question) -> JsonObject:
        """Wait until a question is not open any more; returns its fate, see `Follower.fate`."""
        while True:
            try:
                if not await self._follower.is_open(question):
                    return await self._follower.fate(question)
                self._say_back()
            except (NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)
            await asyncio.sleep(_ASKING_S)

    async def deliver(self, block: JsonObject) -> None:
        """Send an answer until it is confirmed; the same one counts once, however often it is sent.

        Raises:
            AnswerRefused: The session refused it.
        """
        while True:
            try:
                await self.session.answer(block)
            except (NoReplyError, NoWorkerError, ConnectionFailedError) as error:
                self._say_away(error)
                await asyncio.sleep(_RETRY_S)
            else:
                self._say_back()
                return

    def _say_away(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            what = "the server can't be reached" if isinstance(error, ConnectionFailedError) else "no worker answers"
            self._terminal.say(f"  {what}; the session is safe and goes on when it is back. Waiting …", "yellow")

    def _say_back(self) -> None:
        if self._away:
            self._away = False
            self._terminal.say("  it is back", "green")

    # --- Ctrl-C, and leaving ---

    def listen_to_signals(self) -> None:
        """Ctrl-C stops the turn, twice leaves; SIGTERM and a closed terminal leave."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leaving.set)

    def forget_interrupts(self) -> None:
        """The next Ctrl-C is a first one again."""
        self._interrupts = 0

    def stay(self) -> None:
        """Forget that the person wanted to leave: there is something to do first."""
        self._leaving.clear()

    def _on_interrupt(self) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            self._leaving.set()
            return
        self._terminal.busy_with("stopping after the tools that run … (Ctrl-C again leaves)")
        self._stopping = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        try:
            await self.session.stop()
        except Exception as error:
            self._terminal.say(f"  can't stop it: {visible(str(error))}", "yellow")

    async def busy(self, words: str, work: Coroutine[Any, Any, T]) -> T:
        """Await the work behind a spinner, unless the person leaves.

        Raises:
            LeavingError: The person leaves.
        """
        with self._terminal.busy(words):
            return await self.or_leave(work)

    async def or_leave(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, unless the person leaves first.

        Raises:
            LeavingError: The person leaves.
        """
        task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._leaving.wait())
        both: list[asyncio.Future[Any]] = [task, leaving]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise LeavingError
            return task.result()
        finally:
            leaving.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
