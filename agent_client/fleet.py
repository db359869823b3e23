"""Watching all sessions: what runs and waits, look by look, and what has changed in between."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from temporalio.client import Client

from countersign.agent_client.errors import ConnectionFailedError, SessionNotFoundError
from countersign.agent_client.listing import LIVE_STATUSES, SessionSummary, listed_sessions, summary_of
from countersign.agent_client.sending import backoff_s
from countersign.agent_client.translation import described

MOST_WATCHED = 500
"""Sessions that are looked at, each time with its memo."""

_CALM = 4
"""While nothing changes, the pause between two looks grows to so many times the shortest."""

_AT_ONCE = 20


@dataclass(frozen=True)
class FleetView:
    """One look at all sessions.

    Attributes:
        sessions: Those that have not ended, the newest first.
        changes: Those that are new or look different since the look before, and those that have ended.
        trouble: Why there was nothing to see this time; "" if there was.
        left_out: True if there are more than were looked at: the newest are.
    """

    sessions: list[SessionSummary]
    changes: list[SessionSummary] = field(default_factory=list)
    trouble: str = ""
    left_out: bool = False


async def watched(
    temporal: Client, agent: str | None, every: timedelta, most: int = MOST_WATCHED
) -> AsyncIterator[FleetView]:
    """See `AgentClient.watch`."""
    known: dict[str, SessionSummary] = {}
    view, first_s = FleetView([]), every.total_seconds()
    pauses_s = backoff_s(first_s, first_s * _CALM)
    while True:
        try:
            sessions = [one async for one in listed_sessions(temporal, agent, LIVE_STATUSES, limit=most + 1)]
            now = {session.session_id: session for session in sessions[:most]}
            gone = await _ended(temporal, [session for name, session in known.items() if name not in now])
            view = FleetView(sessions[:most], [*changed(known, now), *gone], left_out=len(sessions) > most)
            known = now
        except ConnectionFailedError as error:
            view = replace(view, changes=[], trouble=str(error))
        yield view
        if view.changes:
            pauses_s = backoff_s(first_s, first_s * _CALM)
        await asyncio.sleep(next(pauses_s))


def changed(before: Mapping[str, SessionSummary], now: Mapping[str, SessionSummary]) -> list[SessionSummary]:
    """Sessions that are new, have another status or other questions; oldest first. Pure."""
    return sorted(
        (session for name, session in now.items() if name not in before or _face(before[name]) != _face(session)),
        key=lambda session: session.started_at,
    )


def _face(session: SessionSummary) -> tuple[str, int, tuple[str, ...]]:
    return session.status, session.open_questions, tuple(str(card.get("id")) for card in session.questions)


async def _ended(temporal: Client, vanished: Sequence[SessionSummary]) -> list[SessionSummary]:
    """Those sessions that have ended, of some that are not listed any more; the others were crowded out."""
    found: list[SessionSummary] = []
    for begin in range(0, len(vanished), _AT_ONCE):
        looks = [_now(temporal, session) for session in vanished[begin : begin + _AT_ONCE]]
        found += await asyncio.gather(*looks)
    return [session for session in found if session.status not in LIVE_STATUSES]


async def _now(temporal: Client, session: SessionSummary) -> SessionSummary:
    """A session as it is now."""
    try:
        return await summary_of(await described(temporal, session.session_id), tolerant=True)
    except SessionNotFoundError:  # it is older than what the namespace keeps
        return replace(session, status="closed", questions=[], open_questions=0)
