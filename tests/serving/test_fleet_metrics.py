"""What the gauges say when more sessions wait than are read at a time. The server is real; nobody runs them."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from countersign.activities.search_attributes import register
from countersign.agent_client.listing import count_asking
from countersign.agent_core.wire import MEMO_QUESTIONS, SEARCH_AGENT, SEARCH_PENDING, SESSION_WORKFLOW
from countersign.serving import fleet_metrics
from countersign.serving.fleet_metrics import Waiting, counted, pause_s, report
from countersign.serving.shares import Share

OLDEST = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def queue(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A queue of its own, in a namespace with our search attributes; four sessions are read at most."""
    await register(client)
    monkeypatch.setattr(fleet_metrics, "MOST_SESSIONS", 4)
    name = f"gauges-{uuid.uuid4().hex[:8]}"
    yield name
    for one in (name, elsewhere(name)):
        async for session in client.list_workflows(f"TaskQueue = '{one}'"):
            await client.get_workflow_handle(session.id).terminate("test")


def elsewhere(queue: str) -> str:
    """Another queue."""
    return f"{queue}-elsewhere"


async def waiting(client: Client, queue: str, agent: str, sessions: int) -> None:
    """Sessions that wait with two questions each; the first that begins has the oldest."""
    attributes = TypedSearchAttributes([
        SearchAttributePair(SearchAttributeKey.for_keyword(SEARCH_AGENT), agent),
        SearchAttributePair(SearchAttributeKey.for_int(SEARCH_PENDING), 2),
    ])  # fmt: skip
    for number in range(sessions):
        asked = [{"asked_at": (OLDEST + timedelta(hours=number + extra)).isoformat()} for extra in (0, 1)]
        await client.start_workflow(
            SESSION_WORKFLOW,
            id=uuid.uuid4().hex,
            task_queue=queue,
            memo={MEMO_QUESTIONS: asked},
            search_attributes=attributes,
        )
    async with asyncio.timeout(60):  # the list follows after a moment
        while await count_asking(client, agent, f"TaskQueue = '{queue}'") < sessions:
            await asyncio.sleep(0.05)


def share(queue: str, *agents: str) -> list[Share]:
    """A queue with agents of these names."""
    nothing: Any = None
    return [Share(queue, dict.fromkeys(agents, nothing))]


async def test_beyond_the_limit_the_oldest_question_is_still_found(client, queue):
    """The alert on its age does not fall silent when the most wait; all sessions are counted."""
    await waiting(client, queue, "payer", 9)
    found = (await counted(client, share(queue, "payer")))["payer"]
    assert found.asked_at == OLDEST
    assert found.truncated
    assert found.sessions == 9
    assert 9 < found.questions <= 18


async def test_another_agents_sessions_use_up_no_place(client, queue):
    """Each agent has the limit for itself, each queue too."""
    await waiting(client, queue, "looker", 2)
    await waiting(client, queue, "payer", 5)
    await waiting(client, elsewhere(queue), "looker", 5)
    found = (await counted(client, share(queue, "looker", "payer")))["looker"]
    assert (found.sessions, found.questions, found.asked_at) == (2, 4, OLDEST)
    assert not found.truncated


class Remembering:
    """A meter whose gauges remember what they were set to last: by name, without what all names share, and agent."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str | None], float] = {}

    def create_gauge(self, name: str, *_: str) -> Any:
        """A gauge of that name."""

        class Gauge:
            def set(_, value: float, labels: dict[str, str] | None = None) -> None:
                self.values[name.removeprefix("countersign_"), (labels or {}).get("agent")] = value

        return Gauge()

    create_gauge_float = create_gauge


def test_every_gauge_says_what_was_counted_of_its_agent():
    """An agent of which nothing waits has zeros, and not its last values; an age is one, whatever the clocks say."""
    meter: Any = Remembering()
    now = OLDEST + timedelta(hours=2)
    many = Waiting(sessions=3, questions=5, unknown=1, asked_at=OLDEST, truncated=True)
    ahead = Waiting(sessions=1, questions=1, asked_at=now + timedelta(seconds=1))
    report(meter, {"payer": many, "looker": Waiting(), "ahead": ahead}, now)
    names = ("sessions_waiting", "questions_open", "unknown_outcomes_open", "oldest_question_age_seconds",
             "fleet_truncated")  # fmt: skip
    told = {agent: [meter.values[name, agent] for name in names] for agent in ("payer", "looker", "ahead")}
    assert told == {"payer": [3, 5, 1, 7_200.0, 1], "looker": [0, 0, 0, 0.0, 0], "ahead": [1, 1, 0, 0.0, 0]}
    assert meter.values["fleet_counted_timestamp_seconds", None] == now.timestamp()
    report(meter, {"payer": Waiting()}, now)
    assert [meter.values[name, "payer"] for name in names] == [0, 0, 0, 0.0, 0]


def test_workers_that_started_together_do_not_count_together():
    """The pauses differ, and are what was asked for on average."""
    pauses = [pause_s(30) for _ in range(1_000)]
    assert 15 <= min(pauses) < max(pauses) <= 45
    assert len(set(pauses)) > 900
    assert sum(pauses) / len(pauses) == pytest.approx(30, abs=2)
