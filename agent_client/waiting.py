"""What waits for a person, over all sessions: from Temporal's list and the memos, with no query."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from temporalio.client import Client, WorkflowExecution

from countersign.agent_client.listing import agent_of, cards_of, listed, quoted
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import SEARCH_AGENT, SEARCH_PENDING, SESSION_WORKFLOW

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
    narrow = f"{_SESSIONS} AND ({SEARCH_PENDING} > 0 OR {SEARCH_PENDING} IS NULL)"
    if agent is not None:
        narrow += f" AND ({SEARCH_AGENT} = '{quoted(agent)}' OR {SEARCH_AGENT} IS NULL)"
    async for execution in listed(temporal, narrow, _SESSIONS):
        if (found := await _read(execution, agent)) is not None:
            yield found


async def _read(execution: WorkflowExecution, agent: str | None) -> WaitingSession | None:
    cards = await cards_of(execution)
    if not cards:
        return None
    name = await agent_of(execution)
    if agent is not None and name != agent:
        return None
    return WaitingSession(execution.id, name, execution.start_time, cards)
