"""The conversation of `chat`: prompt, watch, ask, until the person leaves or the session ends."""

from datetime import UTC, datetime
from typing import Any

from countersign.agent_client.cli import chat_view
from countersign.agent_client.cli.chat_asking import CLOSE, COMMANDS, LEAVE, Asker, like_a_command
from countersign.agent_client.cli.chat_line import InterruptedLineError, Terminal
from countersign.agent_client.cli.chat_link import LeavingError, Link
from countersign.agent_client.cli.chat_wish import Wish
from countersign.agent_client.cli.event_text import event_text
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.running import UsageError
from countersign.agent_client.client import AgentClient
from countersign.agent_client.errors import ConnectionFailedError, SessionEndedError
from countersign.agent_client.events import SessionEvent
from countersign.agent_client.listing import ENDED_STATUSES
from countersign.agent_client.queueing import send_prompt
from countersign.agent_client.shell import command
from countersign.agent_client.starting import checked_prompt, new_session_id
from countersign.agent_core.errors import AnswerRefused, PayloadTooLargeError
from countersign.agent_core.visible import visible

_LATEST_MESSAGES = 6
"""How many messages are shown of a session that is taken up again."""

_AGAIN = "; arrow up brings the line back"


class Conversation:
    """One person, one session, one terminal.

    Args:
        client: Starts or finds the session.
        wish: What was asked for.
        terminal: Where the person is.
    """

    def __init__(self, client: AgentClient, wish: Wish, terminal: Terminal) -> None:
        self._client, self._wish, self._terminal = client, wish, terminal
        self._agent, self._close, self._begun = wish.agent, wish.close, wish.session_id is not None
        session = client.session(wish.session_id or new_session_id(wish.agent))
        self._link = Link(session, terminal, self._tell, _LATEST_MESSAGES if self._begun else None)
        self._asker = Asker(self._link, terminal, wish.responder)
        self._transcript = Transcript(brief=True)
        self._own_prompts: list[str] = []
        self._turn, self._shown = 0, 0

    async def run(self) -> None:
        """Talk until the person leaves or the session has ended."""
        self._link.listen_to_signals()
        try:
            if self._begun:
                await self._take_up()
            elif self._wish.prompt is not None:
                await self._start(self._wish.prompt)
            else:
                self._terminal.say(f"  chat with {visible(self._agent)}; /help lists what can be typed", "dim")
            await self._talk()
        except LeavingError:
            await self._leave()

    async def _talk(self) -> None:
        try:
            while not self._begun or await self._follow():
                await self._next_prompt()
        except (LeavingError, SessionEndedError):
            raise
        except Exception:
            if self._begun:
                self._say_the_way_back()
            raise

    # --- Prompts ---

    async def _next_prompt(self) -> None:
        """Read lines until one is a prompt that is sent, or that the session does not take at the moment."""
        while True:
            try:
                text = (await self._link.or_leave(self._terminal.prompt("you> "))).strip()
            except EOFError:
                raise LeavingError from None
            except InterruptedLineError:
                self._terminal.say("  nothing runs; Ctrl-D or /quit leaves", "dim")
                continue
            if text in LEAVE or text == CLOSE:
                self._close = self._close or text == CLOSE
                raise LeavingError
            if like_a_command(text):
                self._terminal.say(COMMANDS, "dim")
            elif text and self._can_be_sent(text):
                if not self._begun:
                    return await self._start(text)
                if await self._send(text):
                    return

    def _can_be_sent(self, text: str) -> bool:
        try:
            checked_prompt(text)
        except PayloadTooLargeError as error:
            self._terminal.say(f"  not sent: {visible(str(error))}", "yellow")
            return False
        return True

    async def _send(self, text: str) -> bool:
        """Send a further prompt, unless the session would not take it: somebody else's turn may ask.

        Returns:
            True if something has happened in the session.
        """
        session = self._link.session
        try:
            warning = await self._link.busy("sending …", send_prompt(session, text))
        except AnswerRefused as refusal:
            self._terminal.say(f"  not sent ({visible(refusal.code)}): {visible(str(refusal))}{_AGAIN}", "yellow")
            return True
        except ConnectionFailedError as error:
            self._terminal.say(f"  it may not have been sent: {visible(str(error))}{_AGAIN}", "yellow")
            return False
        if warning is not None:
            self._terminal.say(f"  {visible(warning)}", "yellow")
        self._own_prompts.append(text)
        self._turn += 1
        return True

    async def _start(self, text: str) -> None:
        """Start the session with its first prompt."""
        session, queue = self._link.session, self._wish.task_queue
        self._own_prompts.append(text)
        self._turn, self._begun = 1, True
        starting = self._client.start(self._agent, text, session_id=session.id, lifetime="open", task_queue=queue)
        try:
            await self._link.busy("starting …", starting)
        except LeavingError:
            raise  # it may have been started
        except Exception:
            self._begun = False
            raise
        self._terminal.say(f"  session {self._link.name}", "dim")

    async def _take_up(self) -> None:
        """Go on with a session."""
        session = self._link.session
        summary = await self._link.busy("looking …", session.summary())
        if summary.ended:
            raise SessionEndedError(session.id, ENDED_STATUSES[summary.status].name.lower())
        if self._agent and summary.agent and self._agent != summary.agent:
            raise UsageError(
                f"session {session.id!r} is one of agent {summary.agent!r}, not {self._agent!r}; leave the agent out"
            )
        self._agent = summary.agent or self._agent or "agent"
        self._terminal.say(f"  session {self._link.name} of {visible(self._agent)}", "dim")

    # --- Watching ---

    async def _follow(self) -> bool:
        """Show what happens and ask what is asked, until nothing runs; False if the session has ended."""
        while True:
            self._link.forget_interrupts()
            if not self._link.questions:
                words = f"{visible(self._agent)} works … (Ctrl-C stops it)"
                event = await self._link.busy(words, self._link.until(self._has_stopped))
                if not self._link.questions:
                    return self._stopped(event)
            open_now = list(self._link.questions.values())
            if len(open_now) > 1:
                self._terminal.say(f"\n  {len(open_now)} questions are open; one after the other:", "dim")
            if not await self._asker.ask(open_now[0]):
                self._close = True
                raise LeavingError

    def _has_stopped(self, event: SessionEvent) -> bool:
        """True if something is asked, or nothing runs any more."""
        if event.kind != "status":
            return event.kind == "ended"
        idle = event.detail["status"] == "idle" and event.detail["turn"] >= self._turn  # and not: not yet begun
        return bool(self._link.questions) or idle

    def _stopped(self, event: SessionEvent) -> bool:
        """Say how a turn has ended; False if the session has, too."""
        self._turn = event.detail.get("turn", self._turn)
        end = chat_view.turn_end(event.detail["stop_reason"], event.detail["error"])
        if end is not None:
            self._terminal.say(f"  {end}", "yellow")
        if event.kind == "ended":
            how = visible(str(event.detail["status"]))
            self._terminal.say(f"  session {self._link.name} has ended ({how})", "dim")
        return event.kind != "ended"

    def _tell(self, event: SessionEvent) -> None:
        """Show what is not shown elsewhere: messages, and what others do."""
        if event.kind == "message":
            self._show(event)
            return
        elsewhere = event.kind in ("answered", "withdrawn", "expired") and event.detail["id"] in self._link.questions
        if elsewhere or event.kind in ("call_waits", "away", "back"):
            text = event_text(self._link.session.id, event, self._transcript, datetime.now(UTC))
            self._terminal.say(f"  {text}", "green" if event.kind == "back" else "yellow")

    def _show(self, event: SessionEvent) -> None:
        message: Any = event.detail
        skipped = message["index"] - self._shown
        if skipped > 0:
            earlier = command("show", self._link.session.id)
            self._terminal.say(f"  … {skipped} earlier messages: {earlier}", "dim")
        self._shown = message["index"] + 1
        text = "\n".join(block["text"] for block in message["content"] if block.get("text"))
        if message["role"] == "user" and text in self._own_prompts:
            self._own_prompts.remove(text)  # it stands above, where it was typed
            return
        if text:
            self._terminal.say(visible(self._agent if message["role"] == "assistant" else "user"))
        for block in self._transcript.blocks(message["content"], "  ", self._terminal.width):
            self._terminal.say(block)

    # --- Leaving ---

    async def _leave(self) -> None:
        """Say how to come back, or end the session."""
        if not self._begun:
            return
        if self._close:
            self._link.stay()
            await self._link.busy("closing …", self._link.session.close())
            self._terminal.say(f"session {self._link.name} is closed")
            return
        self._terminal.say(f"session {self._link.name} stays open, and so does what it asks")
        self._say_the_way_back()

    def _say_the_way_back(self) -> None:
        session_id = self._link.session.id
        self._terminal.say(f"  to come back: {command('chat', '--session', session_id)}", cut=False)
        self._terminal.say(f"  to end it:    {command('stop', session_id, '--close')}", cut=False)
