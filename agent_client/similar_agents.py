"""Agents with a similar name that workers serve: an agent with a queue of its own can be mistyped in silence."""

import asyncio
from difflib import get_close_matches

from temporalio.client import Client

from countersign.agent_client.errors import ClientError
from countersign.agent_client.listing import listed_sessions
from countersign.agent_client.queues import AGENT_PLACE, queue_of
from countersign.agent_client.workers import nobody_polls

_MOST_SESSIONS = 500
"""Sessions whose agents are compared, those that go on and the newest first."""

_MOST_NAMES = 3


async def similar_agents(temporal: Client, task_queue: str, agent: str) -> list[str]:
    """Agents with a similar name that have sessions, and whose queues workers poll; the most similar one first.

    Args:
        temporal: Temporal's client.
        task_queue: Of the workers, with `{agent}` in it; none are looked for without.
        agent: The name that was given.
    """
    if AGENT_PLACE not in task_queue:
        return []
    try:
        known = {found.agent async for found in listed_sessions(temporal, None, (), limit=_MOST_SESSIONS)}
    except ClientError:
        return []
    alike = get_close_matches(agent, sorted(known - {agent, ""}), _MOST_NAMES)
    idle = await asyncio.gather(*(nobody_polls(temporal, queue_of(task_queue, name)) for name in alike))
    return [name for name, unserved in zip(alike, idle, strict=True) if not unserved]
