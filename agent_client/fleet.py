"""Watching all sessions: what runs and waits, look by look, and what has changed in between."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from temporalio.client import Client

from countersign.agent_client.errors import ConnectionFailedError, SessionNotFoundError
from countersign.agent_client.listing import LIVE_STATUSES, SessionSummary, listed_sessions, summary_of
from countersign.agent_client.translation import described


@dataclass(frozen=True)
class FleetView:
    """One look at all sessions.

    Attributes:
        sessions: Those that have not ended, the newest first.
        changes: Those that are new or look different since the look before, and those that have ended.
        trouble: Why there was nothing to see this time; "" if there was.
    """

    sessions: list[SessionSummary]
    changes: list[SessionSummary] = field(default_factory=list)
    trouble: str = ""


async def watched(temporal: Client, agent: str | None, every: timedelta) -> AsyncIterator[FleetView]:
    """See `AgentClient.watch`."""
    known: dict[str, SessionSummary] = {}
    view = FleetView([])
    while True:
        try:
            sessions = [found async for found in listed_sessions(temporal, agent, LIVE_STATUSES)]
            now = {session.session_id: session for session in sessions}
            gone = [await _ended(temporal, known[name]) for name in known.keys() - now.keys()]
            view = FleetView(sessions, [*changed(known, now), *gone])
            known = now
        except ConnectionFailedError as error:
            view = replace(view, changes=[], trouble=str(error))
        yield view
        await asyncio.sleep(every.total_seconds())


def changed(before: Mapping[str, SessionSummary], now: Mapping[str, SessionSummary]) -> list[SessionSummary]:
    """Sessions that are new, have another status or other questions; oldest first. Pure."""
    return sorted(
        (session for name, session in now.items() if name not in before or _face(before[name]) != _face(session)),
        key=lambda session: session.started_at,
    )


def _face(session: SessionSummary) -> tuple[str, tuple[str, ...]]:
    return session.status, tuple(str(card.get("id")) for card in session.questions)


async def _ended(temporal: Client, session: SessionSummary) -> SessionSummary:
    """A session that is not listed any more, as it is now."""
    try:
        return await summary_of(await described(temporal, session.session_id))
    except SessionNotFoundError:  # it is older than what the namespace keeps
        return replace(session, status="closed", questions=[])
