"""The far end of `chat`: a session that is followed and answered however long its worker is away, and Ctrl-C."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from countersign.agent_client.cli.chat_line import Terminal
from countersign.agent_client.errors import ConnectionFailedError, NoReplyError, NoWorkerError
from countersign.agent_client.events import SessionEvent
from countersign.agent_client.session import SessionHandle
from countersign.agent_core.errors import CountersignError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.visible import visible
from countersign.agent_core.wire import Question

T = TypeVar("T")

_RETRY_S = 0.5


class LeavingError(Exception):
    """The person leaves."""


class Link:
    """One session, as a terminal talks to it.

    Args:
        session: The session; it may have to be started still.
        terminal: Where the person is told what is wrong.
        told: Called with each event, before the link takes it in.
        tail: Messages to begin with; None for all.

    Attributes:
        session: The session.
        questions: Those that are open and not answered from here, by id.
    """

    def __init__(
        self, session: SessionHandle, terminal: Terminal, told: Callable[[SessionEvent], None], tail: int | None
    ) -> None:
        self.session, self._terminal, self._told = session, terminal, told
        self.questions: dict[str, Question] = {}
        self._events: AsyncIterator[SessionEvent] = session.follow(tail)
        self._coming: asyncio.Future[SessionEvent] | None = None
        self._interrupts, self._leaving = 0, asyncio.Event()
        self._stopping: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        """The session's id, to be shown."""
        return visible(self.session.id)

    # --- Following and answering, for as long as it takes ---

    async def until(self, done: Callable[[SessionEvent], bool]) -> SessionEvent:
        """Take in what happens until something has happened; a cancel loses nothing of it.

        Args:
            done: Asked after each event; the first one that it likes is returned.
        """
        while True:
            event = await self._next()
            self._told(event)
            self._take_in(event)
            if done(event):
                return event

    async def _next(self) -> SessionEvent:
        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._events))
            self._coming.add_done_callback(_seen)
        await asyncio.wait({self._coming})  # cancelled, it leaves the future alone, and with it the stream
        coming, self._coming = self._coming, None
        return coming.result()

    def _take_in(self, event: SessionEvent) -> None:
        if event.kind == "question":
            question = Question.model_validate(event.detail)
            self.questions[question.id] = question
        elif event.kind in ("answered", "withdrawn", "expired"):
            self.questions.pop(event.detail["id"], None)
        elif event.kind == "ended" or (event.kind == "status" and event.detail["status"] == "idle"):
            self.questions.clear()

    async def until_gone(self, question: Question) -> None:
        """Wait until a question is not open any more, or has changed."""
        await self.until(lambda event: self.questions.get(question.id) != question)

    async def answer(self, block: JsonObject) -> None:
        """Send an answer until it is confirmed; the same one counts once, however often it is sent.

        Raises:
            AnswerRefused: The session refused it.
        """
        waits = False
        while True:
            try:
                await self.session.answer(block)
                break
            except (NoReplyError, NoWorkerError, ConnectionFailedError) as error:
                if not waits:
                    self._terminal.say(f"  {visible(str(error))}; sending it until it is taken …", "yellow")
                waits = True
                await asyncio.sleep(_RETRY_S)
        self.questions.pop(block["interruptResponse"]["interruptId"], None)

    async def stop(self) -> None:
        """Stop the turn; what it asks is withdrawn. That it can't be stopped is said."""
        try:
            await self.session.stop()
        except CountersignError as error:
            self._terminal.say(f"  can't stop it: {visible(str(error))}", "yellow")
        else:
            self.questions.clear()

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
        self._stopping = asyncio.ensure_future(self.stop())

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


def _seen(event: "asyncio.Future[SessionEvent]") -> None:
    """One whose person has left is no error that nobody saw."""
    if not event.cancelled():
        event.exception()
