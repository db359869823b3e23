"""What waits for a person, over all sessions: from Temporal's list and the memos, with no query."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecution
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.starting import MEMO_AGENT
from countersign.agent_client.translation import translated
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import MEMO_QUESTIONS, SEARCH_AGENT, SEARCH_PENDING, SESSION_WORKFLOW

_AGENT = SearchAttributeKey.for_keyword(SEARCH_AGENT)
_SESSIONS = f"WorkflowType = '{SESSION_WORKFLOW}' AND ExecutionStatus = 'Running'"


@dataclass(frozen=True)
class WaitingSession:
    """A session with open questions.

    Attributes:
        session_id: Its id.
        agent: Its agent; "" where neither the memo nor a search attribute says it.
        started_at: When its present run began.
        questions: Cards of the open questions, shortened to fit a memo: `id`, `name` and more.
    """

    session_id: str
    agent: str
    started_at: datetime
    questions: list[JsonObject]


async def waiting_sessions(temporal: Client, agent: str | None) -> AsyncIterator[WaitingSession]:
    """See `AgentClient.waiting`."""
    # IS NULL: a session that began before the attributes were registered does not set them.
    query = f"{_SESSIONS} AND ({SEARCH_PENDING} > 0 OR {SEARCH_PENDING} IS NULL)"
    if agent is not None:
        query += f" AND ({SEARCH_AGENT} = '{_quoted(agent)}' OR {SEARCH_AGENT} IS NULL)"
    try:
        seen = False
        try:
            async for execution in temporal.list_workflows(query):
                seen = True
                if (found := await _read(execution, agent)) is not None:
                    yield found
        except RPCError as error:
            # The namespace knows no such attributes: look at every running session instead.
            if seen or error.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            async for execution in temporal.list_workflows(_SESSIONS):
                if (found := await _read(execution, agent)) is not None:
                    yield found
    except TemporalError as error:
        raise await translated(error, temporal) from error


async def _read(execution: WorkflowExecution, agent: str | None) -> WaitingSession | None:
    memo: Any = await execution.memo_value(MEMO_QUESTIONS, default=None)
    cards = [card for card in memo if isinstance(card, dict)] if isinstance(memo, list) else []
    if not cards:
        return None
    name = execution.typed_search_attributes.get(_AGENT) or str(await execution.memo_value(MEMO_AGENT, default=""))
    if agent is not None and name != agent:
        return None
    return WaitingSession(execution.id, name, execution.start_time, cards)


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")
