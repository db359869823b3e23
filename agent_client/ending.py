"""A session's end: waited for, over any time and any number of lost connections; and who ended it before its time."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistoryEventFilterType,
)
from temporalio.exceptions import ApplicationError, CancelledError, TemporalError, TerminatedError

from countersign.agent_client.errors import AgentRunError, ClientError, SessionEndedError
from countersign.agent_client.sending import backoff_s, uncancelled
from countersign.agent_client.translation import is_transient, translated
from countersign.agent_client.unreadable import readable
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import SessionResult, timestamp

_LONG_POLL_S = 15.0
"""An attempt that lasted longer was connected for a while: an outage is counted anew after it."""


async def result_of(temporal: Client, session_id: str, patience: timedelta) -> SessionResult:
    """The result of a session once it has ended.

    Args:
        temporal: Temporal's client.
        session_id: The session.
        patience: How long an outage of the server may last.

    Raises:
        AgentRunError: Its workflow failed.
        SessionEndedError: It was cancelled, terminated or timed out.
        SessionNotFoundError: There is no such session.
        SessionUnreadableError: Its result can't be decoded here.
    """
    handle = temporal.get_workflow_handle(session_id)
    loop = asyncio.get_running_loop()
    outage_began_s: float | None = None
    pauses = backoff_s()
    while True:
        began_s = loop.time()
        try:
            with readable(session_id):
                return SessionResult.model_validate(await uncancelled(lambda: _result(handle)))
        except WorkflowFailureError as error:
            raise _ended(session_id, error.cause) from error
        except TemporalError as error:
            now_s = loop.time()
            if outage_began_s is None or now_s - began_s > _LONG_POLL_S:
                outage_began_s, pauses = now_s, backoff_s()
            if not is_transient(error) or now_s - outage_began_s > patience.total_seconds():
                raise await translated(error, temporal, session_id) from error
            await asyncio.sleep(next(pauses))


async def _result(session: WorkflowHandle[Any, Any]) -> Any:
    """What a session's last run returns: a run that was reset counts as terminated, and another one goes on."""
    while True:
        try:
            return await session.result()
        except WorkflowFailureError as error:
            terminated = WorkflowExecutionStatus.TERMINATED
            if not isinstance(error.cause, TerminatedError) or (await session.describe()).status == terminated:
                raise


def _ended(session_id: str, cause: Any) -> ClientError:
    if isinstance(cause, ApplicationError):
        return AgentRunError(session_id, cause.type or "ApplicationError", cause.message)
    if isinstance(cause, CancelledError):
        return SessionEndedError(session_id, "canceled")
    if isinstance(cause, TerminatedError):
        return SessionEndedError(session_id, "terminated")
    return AgentRunError(session_id, type(cause).__name__, str(cause))


@dataclass(frozen=True)
class Termination:
    """That a session was ended from outside.

    Attributes:
        at: When.
        by: The process that asked for it, like "1234@host".
        reason: What was given as one; "" if nothing was.
    """

    at: datetime
    by: str
    reason: str

    def as_json(self) -> JsonObject:
        """As plain JSON, the time as on the wire."""
        return {"at": timestamp(self.at), "by": self.by, "reason": self.reason}


async def termination_of(temporal: Client, session_id: str) -> Termination | None:
    """How a session was terminated, from the last event of its history; None if it was not. Needs no worker.

    Args:
        temporal: Temporal's client.
        session_id: A session that has ended.

    Raises:
        SessionNotFoundError: There is no such session.
        ConnectionFailedError, AccessDeniedError: The server can't be asked.
    """
    handle = temporal.get_workflow_handle(session_id)
    try:
        events = handle.fetch_history_events(event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT)
        async for event in events:
            if event.HasField("workflow_execution_terminated_event_attributes"):
                told = event.workflow_execution_terminated_event_attributes
                return Termination(event.event_time.ToDatetime(UTC), told.identity, told.reason)
    except TemporalError as error:
        raise await translated(error, temporal, session_id) from error
    return None
