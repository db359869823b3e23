"""`SessionHandle`: what client code can do with one session."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from temporalio.exceptions import TemporalError

from countersign.agent_client.answers import OneAnswer, answer_blocks, is_answer_batch, request_id
from countersign.agent_client.ending import result_of
from countersign.agent_client.errors import AgentRunError, NoReplyError, SessionEndedError
from countersign.agent_client.events import SessionEvent, followed
from countersign.agent_client.sending import moved_without_reply, uncancelled
from countersign.agent_client.session_answers import SessionAnswers
from countersign.agent_client.settling import Outcome, next_outcome, settled
from countersign.agent_client.starting import checked, checked_prompt
from countersign.agent_client.stopping import StopReport, stop_session
from countersign.agent_client.translation import described, translated
from countersign.agent_core.wire import (
    CLOSE_UPDATE,
    INVOKE_UPDATE,
    PROMPT_SIGNAL,
    STOP_SIGNAL,
    PromptContent,
    Question,
    SessionResult,
)


class SessionHandle(SessionAnswers):
    """One session. Making a handle sends nothing.

    Args:
        temporal: A connected Temporal client.
        session_id: The session's id, which is its workflow's id.
        patience: How long an answer or prompt is sent again while nothing confirms it.

    What it reads (`status`, `interrupts`, `transcript`, `audit`, `summary`) comes from `SessionReader`, how it
    is answered from `SessionAnswers`.
    Every method raises SessionNotFoundError if there is no such session, ConnectionFailedError or
    AccessDeniedError if the server can't be asked, and those that change something raise
    SessionEndedError if it takes nothing more.
    """

    # --- Prompts ---

    async def prompt(self, content: PromptContent) -> None:
        """Queue a prompt and don't wait."""
        await self._signal(PROMPT_SIGNAL, checked_prompt(content))

    async def invoke(
        self, content: PromptContent | OneAnswer | Sequence[OneAnswer], *, update_id: str | None = None
    ) -> SessionResult:
        """Send a prompt, or answers, and wait until the loop stops again, like calling the agent.

        Args:
            content: Text or content blocks; or answers, as `answer` takes them.
            update_id: An id of your own for this prompt. Sent again with the same id, it runs once and gets its first
                outcome. A fresh one if None: sent again, it would be another prompt.

        Returns:
            How it has stopped. If a turn before this prompt's own stops for answers, that is the stop reason
            "interrupt" of its questions; the prompt waits behind them.

        Raises:
            AnswerRefused: Refused, with a code; nothing has changed.
            AgentRunError: The turn failed.
            NoReplyError: Not confirmed in time; its `update_id` is the one to send it again with.
            ValueError: For an update id that is blank.
        """
        update_id = request_id(INVOKE_UPDATE, update_id)
        if is_answer_batch(content):
            sent = {"responses": checked(answer_blocks(content), "the answers")}
        else:
            sent = {"prompt": checked_prompt(content)}
        got = await self._deliver(INVOKE_UPDATE, sent, wait_long=True, update_id=update_id)
        try:
            while isinstance(got, dict) and got.get("moved"):
                got = await self._deliver(INVOKE_UPDATE, {"turn": got["turn"]}, wait_long=True)
        except NoReplyError as error:  # it names the update that asked for the outcome, and not the prompt's own
            raise NoReplyError(moved_without_reply(self.id, update_id), update_id) from error
        return self._succeeded(SessionResult.model_validate(got))

    async def result(self) -> SessionResult:
        """Wait for the end of the session.

        Raises:
            AgentRunError: The last turn failed.
            SessionEndedError: It was cancelled or terminated.
        """
        return self._succeeded(await result_of(self._temporal, self.id, self._patience))

    async def stop(self) -> None:
        """Stop the running turn gracefully: after the tools that run, without waiting for a model."""
        await self._signal(STOP_SIGNAL, {})

    async def close(self) -> None:
        """End an open session; one that has ended already stays as it is."""
        try:
            await self._deliver(CLOSE_UPDATE, {})
        except SessionEndedError as ended:
            if ended.status != "completed":
                raise

    async def stop_and_wait(self, *, close: bool = False) -> StopReport:
        """Stop the running turn gracefully, and wait until it has stopped.

        Args:
            close: True to end an open session too.

        Returns:
            What happened; a session that has ended or stands idle is left as it is.

        Raises:
            NoWorkerError: No worker runs; the stop is sent and takes effect when one does.
        """
        return await stop_session(self, close=close)

    async def terminate(self, reason: str) -> None:
        """End the session at once, as the last resort: nothing is withdrawn in order, running tools are abandoned.

        Args:
            reason: Kept in the history, where it is never encrypted.
        """
        await described(self._temporal, self.id)  # an id that is no session's is not touched
        handle = self._temporal.get_workflow_handle(self.id)
        try:
            await uncancelled(lambda: handle.terminate(reason=reason))
        except TemporalError as error:
            raise await translated(error, self._temporal, self.id) from error

    # --- Looking ---

    def follow(self, tail: int | None = None) -> AsyncIterator[SessionEvent]:
        """Everything that happens from now on, until the session has ended.

        A worker or a server that is away is waited for, however long; an event says so, once. While the session waits
        or stands idle, a worker is missed only when something happens: it is not asked before.

        Args:
            tail: Messages of the conversation so far to begin with; None for all.
        """
        return followed(self._temporal, self, tail)

    async def wait_for_questions(self, timeout: timedelta | None = None) -> list[Question]:
        """Wait until the session waits for a person, or for nobody: it has ended or stands idle.

        Args:
            timeout: How long at most; None for any time.

        Raises:
            TimeoutError: If it still runs then.
        """
        async with asyncio.timeout(timeout.total_seconds() if timeout is not None else None):
            _, questions = await settled(self)
        return questions

    async def outcome(self) -> Outcome:
        """Wait until the loop stops, and say with what: questions, or the model's last message.

        Raises:
            AgentRunError: The turn failed.
            SessionEndedError: It was cancelled or terminated.
        """
        return await next_outcome(self)

    def _succeeded(self, result: SessionResult) -> SessionResult:
        if result.error is not None:
            raise AgentRunError(self.id, result.error.type, result.error.message, result.error.origin)
        return result
