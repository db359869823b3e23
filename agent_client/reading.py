"""Asking a session: its queries, as values, and what its memo says without one. Changes nothing."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import TemporalError

from countersign.agent_client.errors import ClientError, SessionEndedError
from countersign.agent_client.fates import fate_of, refusal_after
from countersign.agent_client.listing import SessionSummary, summary_of
from countersign.agent_client.sending import uncancelled
from countersign.agent_client.session_status import SessionStatus
from countersign.agent_client.shell import command
from countersign.agent_client.translation import described, end_of, translated
from countersign.agent_client.unreadable import readable
from countersign.agent_client.waiting_calls import PendingCall, WaitingCall, session_calls
from countersign.agent_client.workers import no_answer, no_worker, nobody_polls
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.visible import DIGEST_DIGITS
from countersign.agent_core.wire import (
    AUDIT_QUERY,
    INTERRUPTS_QUERY,
    STATUS_QUERY,
    TRANSCRIPT_QUERY,
    AuditEntry,
    Question,
)

_QUERY_TIMEOUT = timedelta(seconds=10)

_UNANSWERED_S, _UNTAKEN_S = 1.5, 4.0
"""Without an answer for so long, the server is asked who polls: nobody at all; nobody since the query was sent.

The second one is no proof: a worker that knows the session takes its queries from a queue of its own, and may
be busy.
"""


class SessionReader:
    """Reads one session through its queries, which a worker answers, also for one that has ended.

    Args:
        temporal: Temporal's client.
        session_id: The session.

    Attributes:
        id: The session's id.
    """

    def __init__(self, temporal: Client, session_id: str) -> None:
        self.id = session_id
        self._temporal = temporal

    async def summary(self) -> SessionSummary:
        """What the server knows of the session, with no worker: status, and short cards of its questions."""
        seen = await described(self._temporal, self.id)
        with readable(self.id):
            return await summary_of(seen)

    async def waiting_calls(self) -> list[WaitingCall]:
        """Tool calls that no worker of their tool's own queue has taken yet; needs no worker."""
        return (await self.calls())[1]

    async def calls(self) -> tuple[list[PendingCall], list[WaitingCall]]:
        """Calls that run or wait, and those of them that wait on a queue of their own; needs no worker."""
        return await session_calls(self._temporal, self.id)

    async def interrupts(self) -> list[Question]:
        """The open questions, oldest first; none if the session has ended, however it did."""
        try:
            open_now = await self._ask(INTERRUPTS_QUERY, reject_condition=QueryRejectCondition.NOT_OPEN)
        except WorkflowQueryRejectedError:
            return []
        return [Question.model_validate(item) for item in open_now]

    async def question(self, interrupt_id: str, digest: str = "") -> Question:
        """An open question.

        Args:
            interrupt_id: Its id.
            digest: Beginning of the digest that was seen; "" for any.

        Raises:
            AnswerRefused: If no open question has that id; "already_answered", "expired" or "withdrawn",
                if the audit trail knows what became of it, else "unknown_interrupt". "outdated" if it
                has another digest.
        """
        for question in await self.interrupts():
            if question.id == interrupt_id:
                return unchanged(self.id, question, digest)
        for entry in reversed(await self.audit()):
            if entry.detail.get("question") == interrupt_id and (fate := fate_of(entry)) is not None:
                raise refusal_after(interrupt_id, entry, fate)
        raise AnswerRefused(
            "unknown_interrupt",
            f"session {self.id!r} has no open question {interrupt_id!r}; see: {command('show', self.id)}",
        )

    async def status(self) -> SessionStatus:
        """What the session does, in plain JSON."""
        said = await self._ask(STATUS_QUERY)
        ended = await end_of(self._temporal, self.id)
        if ended is None:
            return cast(SessionStatus, {**said, "ended": None})
        if not isinstance(ended, SessionEndedError):
            raise ended
        if said["status"] != "closed":  # it may have ended after it was asked, and has more to say by now
            said = await self._ask(STATUS_QUERY)
        # Whoever terminates a workflow does not ask it: it would say for ever that it waits.
        over = {"status": "closed", "open_questions": 0, "next_deadline": None, "ended": ended.status}
        return cast(SessionStatus, {**said, **over})

    async def transcript(self, start: int = 0) -> AsyncIterator[Message]:
        """The conversation, message by message, fetched a page at a time.

        Args:
            start: Number of the first message, from 0. Messages keep their numbers when earlier ones are cut; those
                are left out.
        """
        async for _, message in numbered(self, start):
            yield message

    async def _stored(self, stored: JsonObject, start: int) -> list[Message]:
        """Messages that the session has put into external storage, from number `start` on."""
        payload = Payload.FromString(base64.b64decode(stored["reference"]))
        with readable(self.id):
            [messages] = await self._temporal.data_converter.decode([payload])
        found: list[Message] = messages[start - stored["start"] :]
        return found

    async def audit(self) -> list[AuditEntry]:
        """The audit trail, oldest first."""
        entries = await self._ask(AUDIT_QUERY)
        return [AuditEntry.model_validate(item) for item in entries]

    async def _ask(
        self, query: str, argument: JsonObject | None = None, *, reject_condition: QueryRejectCondition | None = None
    ) -> Any:
        handle = self._temporal.get_workflow_handle(self.id)
        try:
            with readable(self.id):
                options: Any = {"reject_condition": reject_condition, "rpc_timeout": _QUERY_TIMEOUT}
                return await self._while_polled(lambda: handle.query(query, argument or {}, **options))
        except WorkflowQueryRejectedError:
            raise
        except TemporalError as error:
            raise await translated(error, self._temporal, self.id) from error

    async def _while_polled(self, query: Callable[[], Awaitable[Any]]) -> Any:
        """A query's answer; gives up before its time is over if it looks as if nobody will answer.

        Raises:
            NoWorkerError: If no worker polls the session's task queue, or none has since.
        """
        asked_at = datetime.now(UTC)
        task = asyncio.ensure_future(uncancelled(query))
        try:
            for wait_s, since in ((_UNANSWERED_S, None), (_UNTAKEN_S - _UNANSWERED_S, asked_at)):
                done, _ = await asyncio.wait({task}, timeout=wait_s)
                if done:
                    break
                await self._raise_if_nobody_polls(since)
            return await task
        finally:
            if not task.done():
                task.cancel()

    async def _raise_if_nobody_polls(self, since: datetime | None) -> None:
        try:
            seen = await described(self._temporal, self.id)
        except ClientError:
            return  # the query's own answer says it
        if await nobody_polls(self._temporal, seen.task_queue, since):
            temporal = self._temporal
            raise await (no_worker(temporal, seen) if since is None else no_answer(temporal, seen, _UNTAKEN_S))


async def position_of(reader: SessionReader) -> tuple[str, int]:
    """How far a session has come, with no worker: its run, and the events of that run's history.

    While it stays, so does everything that the queries say.
    """
    seen = await described(reader._temporal, reader.id)
    return seen.run_id, seen.history_length


async def numbered(reader: SessionReader, start: int = 0) -> AsyncIterator[tuple[int, Message]]:
    """A session's conversation like `transcript`, each message with its number."""
    following: int | None = start
    while following is not None:
        page = await reader._ask(TRANSCRIPT_QUERY, {"start": following})
        first = page.get("start", following)  # a worker of before does not say it
        messages = await reader._stored(page["stored"], first) if "stored" in page else page["messages"]
        for number, message in enumerate(messages, first):
            yield number, message
        following = page.get("next")


async def message_count(reader: SessionReader) -> int:
    """Messages that a session's conversation has had so far: the number that its next one gets."""
    return int((await reader._ask(TRANSCRIPT_QUERY, {"start": 2**31}))["total"])


def unchanged(session_id: str, question: Question, digest: str) -> Question:
    """The question, if it is the one that was seen.

    Args:
        session_id: Whose it is.
        question: As it is.
        digest: Beginning of the digest that was seen; "" for any.

    Raises:
        AnswerRefused: "outdated", if it is another one.
    """
    if question.digest.startswith(digest.lower()):
        return question
    raise AnswerRefused(
        "outdated",
        f"question {question.id} is not the one you saw (its digest is {question.digest[:DIGEST_DIGITS]}); "
        f"look again: {command('interrupts', session_id)}",
    )
