"""Asking a session: its queries, as values. Changes nothing."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import TemporalError

from countersign.agent_client.errors import SessionEndedError
from countersign.agent_client.sending import uncancelled
from countersign.agent_client.translation import end_of, translated
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import (
    AUDIT_QUERY,
    INTERRUPTS_QUERY,
    STATUS_QUERY,
    TRANSCRIPT_QUERY,
    AuditEntry,
    Question,
)

_QUERY_TIMEOUT = timedelta(seconds=10)


class SessionReader:
    """Reads one session through its queries, which a worker answers, also for one that has ended.

    Args:
        temporal: Temporal's client.
        session_id: The session.
    """

    def __init__(self, temporal: Client, session_id: str) -> None:
        self._temporal = temporal
        self._session_id = session_id

    async def interrupts(self) -> list[Question]:
        """The open questions, oldest first; none if the session has ended, however it did."""
        try:
            found = await self._ask(INTERRUPTS_QUERY, reject_condition=QueryRejectCondition.NOT_OPEN)
        except WorkflowQueryRejectedError:
            return []
        return [Question.model_validate(item) for item in found]

    async def status(self) -> JsonObject:
        """What the session does, in plain JSON.

        Returns:
            `status` is "running", "waiting", "idle" or "closed"; `ended` says how its workflow ended
            ("completed", "terminated", …), None while it runs; the rest is what the query says.
        """
        found = dict(await self._ask(STATUS_QUERY))
        ended = await end_of(self._temporal, self._session_id)
        if not isinstance(ended, SessionEndedError):
            return {**found, "ended": None}
        # Whoever terminates a workflow does not ask it: it would say for ever that it waits.
        return {**found, "status": "closed", "open_questions": 0, "next_deadline": None, "ended": ended.status}

    async def transcript(self) -> AsyncIterator[Message]:
        """The conversation, message by message, fetched a page at a time."""
        start: int | None = 0
        while start is not None:
            page = await self._ask(TRANSCRIPT_QUERY, {"start": start})
            for message in page["messages"]:
                yield message
            start = page.get("next")

    async def audit(self) -> list[AuditEntry]:
        """The audit trail, oldest first."""
        entries = await self._ask(AUDIT_QUERY)
        return [AuditEntry.model_validate(item) for item in entries]

    async def _ask(
        self, query: str, argument: JsonObject | None = None, *, reject_condition: QueryRejectCondition | None = None
    ) -> Any:
        handle = self._temporal.get_workflow_handle(self._session_id)
        try:
            return await uncancelled(
                lambda: handle.query(
                    query, argument or {}, reject_condition=reject_condition, rpc_timeout=_QUERY_TIMEOUT
                )
            )
        except WorkflowQueryRejectedError:
            raise
        except TemporalError as error:
            raise await translated(error, self._temporal, self._session_id) from error
