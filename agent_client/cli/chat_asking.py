"""Questions inline: shown in full, answered at the input line, taken away when somebody else was faster."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from countersign.agent_client.answers import answer_block
from countersign.agent_client.cli import chat_view
from countersign.agent_client.cli.cards import inline_card
from countersign.agent_client.cli.chat_line import InterruptedLineError, Terminal
from countersign.agent_client.cli.chat_link import LeavingError, Link
from countersign.agent_core.errors import AnswerRefused, PayloadTooLargeError
from countersign.agent_core.visible import visible
from countersign.agent_core.wire import Question

COMMANDS = """  /quit or Ctrl-D   leave; the session stays open
  /close            end the session and leave
  /stop, Ctrl-C     stop the turn; what it asks is withdrawn. Twice Ctrl-C while it runs: leave
  /json VALUE       at a question: answer with a JSON value
  /help             this list"""

LEAVE, CLOSE, STOP = ("/quit", "/exit"), "/close", "/stop"

_GONE = ("already_answered", "expired", "withdrawn", "outdated", "not_interrupted", "unknown_interrupt", "closed")
"""Refusals that are about the question and not about the answer."""


def like_a_command(text: str) -> bool:
    """True for "/help", and for what looks like a mistyped command: one word, and no path."""
    return text.startswith("/") and len(text.split()) == 1 and text.count("/") == 1


class Asker:
    """Asks the person at the terminal.

    Args:
        link: The session.
        terminal: Where the person is.
        responder: Who answers, as a claim.
    """

    def __init__(self, link: Link, terminal: Terminal, responder: str | None) -> None:
        self._link, self._terminal, self._responder = link, terminal, responder

    async def ask(self, question: Question) -> bool:
        """Ask one question; returns when it is answered, here or elsewhere, or not asked any more.

        Returns:
            False if the person wants to leave and to end the session.

        Raises:
            LeavingError: The person leaves.
        """
        self._terminal.say(f"\n{inline_card(question, datetime.now(UTC), self._terminal.width)}", "bold")
        self._terminal.say(f"  {chat_view.offer(question)}", "dim")
        while (typed := await self._typed_or_withdrawn(question)) is not None:
            if typed in LEAVE:
                raise LeavingError
            if typed == CLOSE:
                return False
            if typed == STOP:
                await self._link.busy("stopping …", self._link.stop())
                return True
            if like_a_command(typed):
                self._terminal.say(COMMANDS, "dim")
            elif await self._understood(question, typed):
                return True
        return True

    async def _typed_or_withdrawn(self, question: Question) -> str | None:
        """A line; None if the question is not open any more."""
        watching = asyncio.ensure_future(self._link.until_gone(question))
        typing = asyncio.ensure_future(self._link.or_leave(self._terminal.answer("answer> ")))
        either: list[asyncio.Future[Any]] = [watching, typing]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if typing.done():
                return (typing.result() or "").strip()
            while not typing.done():  # it may not have begun to read
                self._terminal.withdraw()
                await asyncio.wait({typing}, timeout=0.05)
            watching.result()
            return None
        except EOFError:
            raise LeavingError from None
        except InterruptedLineError:
            return STOP
        finally:
            watching.cancel()

    async def _understood(self, question: Question, typed: str) -> bool:
        """Send what a line means, bound to what was shown; False if another line is needed."""
        try:
            meant = chat_view.meaning(question, typed)
            if meant is None:
                self._terminal.say(f"  {chat_view.offer(question)}; /help for more", "dim")
                return False
            answer, verdict = meant
            block = answer_block(question.id, answer, digest=question.digest, responder=self._responder)
            await self._link.busy("sending the answer …", self._link.answer(block))
        except AnswerRefused as refusal:
            self._terminal.say(f"  refused ({visible(refusal.code)}): {visible(str(refusal))}", "yellow")
            if refusal.code in _GONE:
                self._link.questions.pop(question.id, None)
            return refusal.code in _GONE
        except (ValueError, PayloadTooLargeError) as error:
            self._terminal.say(f"  not sent: {visible(str(error))}", "yellow")
            return False
        self._terminal.say(chat_view.sent(answer, verdict), "dim")
        return True
