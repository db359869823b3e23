"""Whether a session that was just started gets going: a mistyped agent or a missing worker shows at once."""

import asyncio
from datetime import UTC, datetime, timedelta

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError

from countersign.agent_client.errors import AgentRunError, NoWorkerError
from countersign.agent_client.queues import AGENT_PLACE
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.sending import backoff_s, paused
from countersign.agent_client.workers import nobody_polls, start_command
from countersign.agent_core.shell import word
from countersign.agent_core.wire import cycle_id

PATIENCE = timedelta(seconds=1.5)
"""How long it is looked after at most."""


async def trouble_at_start(temporal: Client, reader: SessionReader, task_queue: str) -> str | None:
    """Look after a session that was just started, only as long as needed.

    Args:
        temporal: Temporal's client.
        reader: The session, started a moment ago.
        task_queue: Its workers' queue.

    Returns:
        That no worker takes it, with the next step; None if its first cycle is on its way, or if that
        is not known yet.

    Raises:
        AgentRunError: The turn has failed already, for instance because no worker knows the agent.
    """
    started_at = datetime.now(UTC)
    if await nobody_polls(temporal, task_queue):
        why = f"no worker polls task queue {task_queue!r}"
        return await _waits(temporal, reader.id, task_queue, why) + await _elsewhere(temporal, reader, task_queue)
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            async for _ in paused(backoff_s(0.05, 0.5)):
                if await _under_way(temporal, reader):
                    return None
    except (TimeoutError, NoWorkerError):
        if await nobody_polls(temporal, task_queue, started_at):
            why = f"no worker of task queue {task_queue!r} took it (killed, busy, or no current build)"
            return await _waits(temporal, reader.id, task_queue, why) + await _elsewhere(temporal, reader, task_queue)
    return None


async def _under_way(temporal: Client, reader: SessionReader) -> bool:
    """True once the first cycle has got as far as the agent's first effect, or has ended well."""
    cycle = await _first_cycle(temporal, reader.id)
    if cycle is None:
        return False
    if cycle.status == WorkflowExecutionStatus.RUNNING:
        return bool(cycle.raw_description.pending_activities)
    status = await reader.status()
    if status["error"] is not None:
        raise AgentRunError(
            reader.id, status["error"]["type"], status["error"]["message"], status["error"].get("origin")
        )
    return bool(status["cycle"])


async def _first_cycle(temporal: Client, session_id: str) -> WorkflowExecutionDescription | None:
    try:
        return await temporal.get_workflow_handle(cycle_id(session_id, 1)).describe()
    except RPCError:
        return None


async def _elsewhere(temporal: Client, reader: SessionReader, task_queue: str) -> str:
    """That workers serve the agent on a queue of its own, if so: the client was not told."""
    own = f"{task_queue}-{(await reader.summary()).agent}"
    if await nobody_polls(temporal, own):
        return ""
    template = word(f"{task_queue}-{AGENT_PLACE}")
    return f". Workers poll {own!r}: stop this session, and start it with --task-queue {template}"


async def _waits(temporal: Client, session_id: str, task_queue: str, why: str) -> str:
    return f"{why}: session {session_id!r} waits for one; {await start_command(temporal, task_queue)}"
