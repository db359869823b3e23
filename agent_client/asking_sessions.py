"""Asks some of a queue's sessions how they are, for a diagnosis: whether a worker answers, and what keeps it."""

import asyncio
from datetime import timedelta
from functools import partial

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.diagnosis import Check, waiting_check
from countersign.agent_client.listing import quoted
from countersign.agent_client.sending import within
from countersign.agent_client.shell import temporal_command
from countersign.agent_client.translation import worker_fails
from countersign.agent_client.worker_faults import GIVE_IT, LACKS, lacked
from countersign.agent_client.workers import Build
from countersign.agent_core.wire import SEARCH_PENDING, SESSION_WORKFLOW, STATUS_QUERY

_RPC_TIMEOUT = timedelta(seconds=5)
_ANSWER_S = 3.0
_LISTED = 200
"""Running sessions among which some are chosen."""


async def sessions_check(client: Client, queue: str, current: Build | None) -> Check:
    """Whether a worker answers for the sessions of a queue.

    The newest, the oldest and one between are asked: a worker may have the key of the new ones only.

    Args:
        client: Temporal's client.
        queue: The task queue.
        current: Its current build, if it has one.

    Raises:
        RPCError: If the server limits requests, or does not list sessions.
    """
    running = f"WorkflowType = '{SESSION_WORKFLOW}' AND ExecutionStatus = 'Running' AND TaskQueue = '{quoted(queue)}'"
    count = (await client.count_workflows(running)).count
    try:
        waiting = (await client.count_workflows(f"{running} AND {SEARCH_PENDING} > 0")).count
    except RPCError:  # the namespace does not know the attribute
        waiting = 0
    listed = [session.id async for session in client.list_workflows(running, limit=_LISTED)]
    if not listed:
        return waiting_check(queue, count, waiting, None)
    asked = dict.fromkeys((listed[0], listed[-1], listed[len(listed) // 2]))
    answers = [_Answer(client, session_id) for session_id in asked]
    await asyncio.gather(*(answer.ask() for answer in answers))
    fault = next((answer.fault for answer in answers if answer.fault is not None), None)
    return fault or waiting_check(queue, count, waiting, any(answer.given for answer in answers), current)


class _Answer:
    """What came of asking one session.

    Attributes:
        given: Whether it answered.
        fault: What keeps its worker from that; None if it answered, or if no worker seems to run.
    """

    def __init__(self, client: Client, session_id: str) -> None:
        self._client, self._session_id = client, session_id
        self.given = False
        self.fault: Check | None = None

    async def ask(self) -> None:
        """Ask it.

        Raises:
            RPCError: If the server limits requests.
        """
        handle = self._client.get_workflow_handle(self._session_id)
        try:
            await within(_ANSWER_S, partial(handle.query, STATUS_QUERY, {}, rpc_timeout=_RPC_TIMEOUT))
            self.given = True
        except Exception as error:
            if isinstance(error, RPCError) and error.status == RPCStatusCode.RESOURCE_EXHAUSTED:
                raise
            self.fault = await self._fault(error)

    async def _fault(self, error: Exception) -> Check | None:
        name = repr(self._session_id)
        fails = isinstance(error, RPCError) and worker_fails(error)
        if fails or isinstance(error, WorkflowQueryFailedError):
            what = await lacked(error, self._client, self._session_id)
            if what is not None:
                return Check("sessions", "failure", f"session {name} can't be asked: {LACKS} ({what})", GIVE_IT)
        if fails:
            found = f"its worker fails on session {name} (workflow task in failed state)"
            advice = f"for the cause: {temporal_command('workflow', 'show', '-w', self._session_id)}"
            return Check("sessions", "failure", found, advice)
        if isinstance(error, (RPCError, TimeoutError)):
            return None
        return Check("sessions", "failure", f"session {name} can't say how it is: {error}")
