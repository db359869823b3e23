"""Gauges over all sessions: how many questions wait, and for how long the oldest has.

No single session can tell them. They are counted from Temporal's list of workflows, by each worker for its
own agents; workers that serve the same agents report the same numbers.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio.client import Client
from temporalio.common import MetricMeter

from countersign.agent_client.listing import SessionSummary, count_asking, listed_sessions, quoted
from countersign.agent_core.unknown_outcomes import UNKNOWN_OUTCOME_QUESTION
from countersign.serving.shares import Share

MOST_SESSIONS = 2_000
"""Waiting sessions of an agent whose questions are read at each count; of more, those that began first."""

SESSIONS_WAITING = "countersign_sessions_waiting"
QUESTIONS_OPEN = "countersign_questions_open"
UNKNOWN_OUTCOMES_OPEN = "countersign_unknown_outcomes_open"
OLDEST_AGE = "countersign_oldest_question_age_seconds"
TRUNCATED = "countersign_fleet_truncated"
COUNTED_AT = "countersign_fleet_counted_timestamp_seconds"

_BEFORE_ALL = datetime(2020, 1, 1, tzinfo=UTC)  # no session began before it
_MOST_HALVINGS = 50  # down to a microsecond

logger = logging.getLogger(__name__)


@dataclass
class Waiting:
    """What waits for people, of one agent.

    Attributes:
        sessions: Sessions with open questions.
        questions: Their open questions.
        unknown: Those of them that are about a call that may have run, or that nobody took.
        asked_at: When the oldest was asked; None if none waits.
        truncated: True if there are so many that not all were read. The others count with one question each.
    """

    sessions: int = 0
    questions: int = 0
    unknown: int = 0
    asked_at: datetime | None = field(default=None)
    truncated: bool = False

    def add(self, session: SessionSummary) -> None:
        """Count a session."""
        self.sessions += 1
        self.questions += len(session.questions)
        self.unknown += sum(card.get("name") == UNKNOWN_OUTCOME_QUESTION for card in session.questions)
        for card in session.questions:
            with suppress(KeyError, TypeError, ValueError):
                asked = datetime.fromisoformat(card["asked_at"])
                self.asked_at = asked if self.asked_at is None else min(self.asked_at, asked)


async def counted(client: Client, shares: Sequence[Share]) -> dict[str, Waiting]:
    """What waits, for each agent of this process; sessions of other queues are left to their workers.

    Raises:
        ClientError: If the server can't be asked.
    """
    return {name: await _of(client, share.task_queue, name) for share in shares for name in share.deployments}


async def _of(client: Client, task_queue: str, agent: str) -> Waiting:
    here = f"TaskQueue = '{quoted(task_queue)}'"
    there_are = await count_asking(client, agent, here)
    waiting, rest = Waiting(truncated=there_are > MOST_SESSIONS), 0
    if waiting.truncated:
        here, read = await _began_first(client, agent, here)
        rest = there_are - read
    async for session in listed_sessions(client, agent, (), asking=True, limit=MOST_SESSIONS, also=here):
        waiting.add(session)
    waiting.sessions += rest
    waiting.questions += rest
    return waiting


async def _began_first(client: Client, agent: str, here: str) -> tuple[str, int]:
    """A condition for as many of an agent's sessions as may be read, from the first that began, and how many these are.

    Temporal lists the newest first and can't be told otherwise, so the moment is found by halving: what is older than
    the answer is counted, not read.
    """
    low, high = _BEFORE_ALL, datetime.now(UTC)
    condition, count = f"{here} AND StartTime <= '{low.isoformat()}'", 0
    for _ in range(_MOST_HALVINGS):
        middle = low + (high - low) / 2
        tried = f"{here} AND StartTime <= '{middle.isoformat()}'"
        found = await count_asking(client, agent, tried)
        if found > MOST_SESSIONS:
            high = middle
            continue
        low, condition, count = middle, tried, found
        if found > MOST_SESSIONS // 2:
            break
    return condition, count


def report(meter: MetricMeter, waiting: dict[str, Waiting], now: datetime) -> None:
    """Set the gauges."""
    sessions = meter.create_gauge(SESSIONS_WAITING, "Sessions with open questions")
    questions = meter.create_gauge(QUESTIONS_OPEN, "Questions that wait for a person")
    unknown = meter.create_gauge(UNKNOWN_OUTCOMES_OPEN, "Calls that may have run and wait for a person")
    oldest = meter.create_gauge_float(OLDEST_AGE, "Since the oldest was asked", "s")
    truncated = meter.create_gauge(TRUNCATED, "1 if there are too many to read all")
    counted_at = meter.create_gauge_float(COUNTED_AT, "Last count of these", "s")
    for agent, one in waiting.items():
        labels = {"agent": agent}
        sessions.set(one.sessions, labels)
        questions.set(one.questions, labels)
        unknown.set(one.unknown, labels)
        truncated.set(int(one.truncated), labels)
        oldest.set(max(0.0, (now - one.asked_at).total_seconds()) if one.asked_at else 0.0, labels)
    counted_at.set(now.timestamp())


def pause_s(every_s: float) -> float:
    """Seconds to the next count: `every_s` on average, so that workers that started together drift apart."""
    return random.uniform(0.5, 1.5) * every_s


@asynccontextmanager
async def reporting(client: Client, meter: MetricMeter, shares: Sequence[Share], every_s: float) -> AsyncIterator[None]:
    """Count again and again while the body runs, at random moments of each interval: workers start together."""

    async def again_and_again() -> None:
        while True:
            try:
                report(meter, await counted(client, shares), datetime.now(UTC))
            except Exception as error:  # whatever it is: the worker serves on, and the next count may succeed
                logger.warning("what waits can't be counted | %s: %s", type(error).__name__, error)
            await asyncio.sleep(pause_s(every_s))

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
