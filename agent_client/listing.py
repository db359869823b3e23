"""Sessions as Temporal's list shows them: from memo and search attributes, with no query and no worker."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.starting import MEMO_AGENT
from countersign.agent_client.translation import translated
from countersign.agent_client.unreadable import READING_ERRORS, why
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import MEMO_QUESTIONS, SEARCH_AGENT, SEARCH_PENDING, SEARCH_STATUS, SESSION_WORKFLOW

LIVE_STATUSES = ("running", "waiting", "idle")
ENDED_STATUSES = {
    "closed": WorkflowExecutionStatus.COMPLETED,
    "failed": WorkflowExecutionStatus.FAILED,
    "canceled": WorkflowExecutionStatus.CANCELED,
    "terminated": WorkflowExecutionStatus.TERMINATED,
    "timed_out": WorkflowExecutionStatus.TIMED_OUT,
}
"""How a session can have ended, and what Temporal calls it."""

SESSION_STATUSES = (*LIVE_STATUSES, *ENDED_STATUSES)

_AGENT = SearchAttributeKey.for_keyword(SEARCH_AGENT)
_STATUS = SearchAttributeKey.for_keyword(SEARCH_STATUS)
_PENDING = SearchAttributeKey.for_int(SEARCH_PENDING)
_SESSIONS = f"WorkflowType = '{SESSION_WORKFLOW}' AND ExecutionStatus != 'ContinuedAsNew'"
_OPEN = "CloseTime IS NULL"
"""Running or paused; the second has a name only for servers that know it."""

_PAGE = 200


@dataclass(frozen=True)
class SessionSummary:
    """A session as a list shows it.

    Attributes:
        session_id: Its id.
        agent: Its agent; "" where neither the memo nor a search attribute says it.
        status: "running", "waiting" or "idle"; or, ended, "closed", "failed", "canceled", "terminated"
            or "timed_out". Where search attributes are not registered, an idle one counts as running.
        questions: Cards of the open questions, shortened to fit a memo: `id`, `name`, `calls` and more.
        started_at: When its present run began; a long session has many, one after the other.
        ended_at: When it ended; None if it has not.
        task_queue: Of its workers.
        open_questions: How many there are.
        unreadable: Why its questions can't be read here, for instance for want of a key; "" if they can.
    """

    session_id: str
    agent: str
    status: str
    questions: list[JsonObject]
    started_at: datetime
    ended_at: datetime | None
    task_queue: str
    open_questions: int = 0
    unreadable: str = ""

    @property
    def ended(self) -> bool:
        """True if it takes nothing any more."""
        return self.ended_at is not None

    def as_json(self) -> JsonObject:
        """As plain JSON, times as ISO 8601."""
        return {
            "session_id": self.session_id,
            "agent": self.agent,
            "status": self.status,
            "open_questions": self.open_questions,
            "questions": self.questions,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat() if self.ended_at else None,
            "task_queue": self.task_queue,
            "unreadable": self.unreadable or None,
        }


async def summary_of(execution: WorkflowExecution, *, tolerant: bool = False) -> SessionSummary:
    """One of Temporal's list, or a description, as a session.

    Args:
        execution: What Temporal says.
        tolerant: True for a list: a memo that can't be read here does not hide what can.

    Raises:
        PayloadError, ValueError, KeyError, RuntimeError: If its memo can't be read, unless tolerant.
    """
    attributes = execution.typed_search_attributes
    agent, cards, unreadable = attributes.get(_AGENT) or "", list[JsonObject](), ""
    try:
        agent = agent or str(await execution.memo_value(MEMO_AGENT, default=""))
        cards = await _cards_of(execution)
    except READING_ERRORS as error:
        if not tolerant:
            raise
        unreadable = why(error)
    count = (attributes.get(_PENDING) or 0) if unreadable else len(cards)
    word = next((word for word, status in ENDED_STATUSES.items() if status == execution.status), None)
    live = attributes.get(_STATUS) or ("waiting" if count else "running")
    return SessionSummary(
        session_id=execution.id,
        agent=agent,
        status=word or live,
        questions=[] if word else cards,
        started_at=execution.start_time,
        ended_at=execution.close_time if word else None,
        task_queue=execution.task_queue,
        open_questions=0 if word else count,
        unreadable=unreadable,
    )


async def _cards_of(execution: WorkflowExecution) -> list[JsonObject]:
    """The cards of the open questions that stand in the memo."""
    memo: Any = await execution.memo_value(MEMO_QUESTIONS, default=None)
    return [card for card in memo if isinstance(card, dict)] if isinstance(memo, list) else []


async def listed_sessions(
    temporal: Client,
    agent: str | None,
    statuses: Sequence[str],
    *,
    asking: bool = False,
    limit: int | None = None,
    also: str = "",
) -> AsyncIterator[SessionSummary]:
    """See `AgentClient.sessions`; `also` is a further condition, in Temporal's query language."""
    count = 0
    narrow, wide = (_query(agent, statuses, asking, known, also) for known in (True, False))
    async for execution in _listed(temporal, narrow, wide):
        if limit is not None and count >= limit:
            return
        found = await summary_of(execution, tolerant=True)
        wanted = (agent is None or found.agent == agent) and (not statuses or found.status in statuses)
        if wanted and (found.open_questions or not asking):
            count += 1
            yield found


async def count_asking(temporal: Client, agent: str, also: str) -> int:
    """How many running sessions of an agent may have open questions, without reading any.

    Those without our search attributes count too; in a namespace that does not know these, so do other agents'.

    Args:
        temporal: Temporal's client.
        agent: The agent.
        also: A further condition, in Temporal's query language.

    Raises:
        ClientError: If the server can't be asked.
    """
    try:
        try:
            return (await temporal.count_workflows(_query(agent, (), True, True, also))).count
        except RPCError as error:
            if error.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            return (await temporal.count_workflows(_query(agent, (), True, False, also))).count
    except TemporalError as error:
        raise await translated(error, temporal) from error


async def _listed(temporal: Client, narrow: str, wide: str) -> AsyncIterator[WorkflowExecution]:
    """Temporal's list of workflows.

    Args:
        temporal: Temporal's client.
        narrow: A query that may use our search attributes.
        wide: One that does not, for a namespace that does not know them.
    """
    seen = False
    try:
        try:
            async for execution in temporal.list_workflows(narrow, page_size=_PAGE):
                seen = True
                yield execution
        except RPCError as error:
            if seen or error.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            async for execution in temporal.list_workflows(wide, page_size=_PAGE):
                yield execution
    except TemporalError as error:
        raise await translated(error, temporal) from error


def _query(agent: str | None, statuses: Sequence[str], asking: bool, attributes: bool, also: str = "") -> str:
    # IS NULL: a session that began before the attributes were registered does not set them.
    query = f"{_SESSIONS} AND {also}" if also else _SESSIONS
    if agent is not None and attributes:
        query += f" AND ({SEARCH_AGENT} = '{quoted(agent)}' OR {SEARCH_AGENT} IS NULL)"
    if asking:
        query += f" AND {_OPEN}"
        query += f" AND ({SEARCH_PENDING} > 0 OR {SEARCH_PENDING} IS NULL)" if attributes else ""
    if statuses:
        query += f" AND ({' OR '.join(_status_query(word, attributes) for word in dict.fromkeys(statuses))})"
    return query


def _status_query(word: str, attributes: bool) -> str:
    if word in ENDED_STATUSES:
        return f"ExecutionStatus = '{ENDED_STATUSES[word].name.title().replace('_', '')}'"
    if word not in LIVE_STATUSES:
        raise ValueError(f"no session has the status {word!r}; use {', '.join(SESSION_STATUSES)}")
    also = f" AND ({SEARCH_STATUS} = '{word}' OR {SEARCH_STATUS} IS NULL)" if attributes else ""
    return f"({_OPEN}{also})"


def quoted(value: str) -> str:
    """Text for a query's '…'."""
    return value.replace("\\", "\\\\").replace("'", "\\'")
