"""Gauges over all sessions: how many questions wait, and for how long the oldest has.

No single session can tell them. They are counted from Temporal's list of workflows, by each worker for its
own agents; workers that serve the same agents report the same numbers.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from temporalio.client import Client
from temporalio.common import MetricMeter

from countersign.agent_client.listing import SessionSummary, listed_sessions
from countersign.serving.shares import Share

MOST_SESSIONS = 2_000
"""Waiting sessions that are counted; of more, the newest are."""

SESSIONS_WAITING = "countersign_sessions_waiting"
QUESTIONS_OPEN = "countersign_questions_open"
OLDEST_AGE = "countersign_oldest_question_age_seconds"
COUNTED_AT = "countersign_fleet_counted_timestamp_seconds"

logger = logging.getLogger(__name__)


@dataclass
class Waiting:
    """What waits for people, of one agent.

    Attributes:
        sessions: Sessions with open questions.
        questions: Their open questions.
        asked_at: When the oldest was asked; None if none waits.
    """

    sessions: int = 0
    questions: int = 0
    asked_at: datetime | None = field(default=None)

    def add(self, session: SessionSummary) -> None:
        """Count a session."""
        self.sessions += 1
        self.questions += len(session.questions)
        for card in session.questions:
            with suppress(KeyError, TypeError, ValueError):
                asked = datetime.fromisoformat(card["asked_at"])
                self.asked_at = asked if self.asked_at is None else min(self.asked_at, asked)


async def counted(client: Client, shares: Sequence[Share]) -> dict[str, Waiting]:
    """What waits, for each agent of this process; sessions of other queues are left to their workers.

    Raises:
        ClientError: If the server can't be asked.
    """
    found = {name: Waiting() for share in shares for name in share.deployments}
    mine = {(share.task_queue, name) for share in shares for name in share.deployments}
    async for session in listed_sessions(client, None, (), asking=True, limit=MOST_SESSIONS):
        if (session.task_queue, session.agent) in mine:
            found[session.agent].add(session)
    return found


def report(meter: MetricMeter, waiting: dict[str, Waiting], now: datetime) -> None:
    """Set the gauges."""
    sessions = meter.create_gauge(SESSIONS_WAITING, "Sessions with open questions")
    questions = meter.create_gauge(QUESTIONS_OPEN, "Questions that wait for a person")
    oldest = meter.create_gauge_float(OLDEST_AGE, "Since the oldest was asked", "s")
    counted_at = meter.create_gauge_float(COUNTED_AT, "Last count of these", "s")
    for agent, one in waiting.items():
        labels = {"agent": agent}
        sessions.set(one.sessions, labels)
        questions.set(one.questions, labels)
        oldest.set(max(0.0, (now - one.asked_at).total_seconds()) if one.asked_at else 0.0, labels)
    counted_at.set(now.timestamp())


@asynccontextmanager
async def reporting(client: Client, meter: MetricMeter, shares: Sequence[Share], every_s: float) -> AsyncIterator[None]:
    """Count again and again while the body runs."""

    async def again_and_again() -> None:
        while True:
            try:
                report(meter, await counted(client, shares), datetime.now(UTC))
            except Exception as error:  # whatever it is: the worker serves on, and the next count may succeed
                logger.warning("what waits can't be counted | %s: %s", type(error).__name__, error)
            await asyncio.sleep(every_s)

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
