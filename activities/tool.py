"""Runs tools: one activity type per tool, named after it.

An attempt that finds the mark of an earlier one (see `activities.mark`) does not run the tool again,
unless the tool is idempotent.
"""

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from countersign.activities import mark
from countersign.activities.heartbeats import heartbeats
from countersign.activities.threads import in_thread
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.errors import ToolError
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.tools import Tool
from countersign.agent_core.tools.execution import execute
from countersign.agent_core.tools.schema import plain_numbers
from countersign.agent_core.wire import INVOKING, OUR_ACTIVITIES, ToolCall, ToolOutcome

IDEMPOTENT_ATTEMPTS = 10
"""After so many attempts that lost their worker, an idempotent tool is left to a person too."""

OTHER_CODE_ATTEMPTS = 8
"""After so many workers whose tool does not take the input that was signed (13 s), a person is asked."""


class ToolActivities:
    """The tool activities.

    Args:
        deployments: The agents of this worker, by name.
        task_queue: The queue that it serves; it runs no tool that has another queue.
        own_only: True to run only tools that name this queue.
    """

    def __init__(self, deployments: Mapping[str, AgentDeployment], task_queue: str, *, own_only: bool = False) -> None:
        self._deployments = deployments
        self._task_queue, self._own_only = task_queue, own_only

    def all(self) -> list[Callable[..., Awaitable[ToolOutcome]]]:
        """An activity for each tool name of the agents, and one for calls of tools that nobody here has."""
        agents = [deployment.template for deployment in self._deployments.values()]
        names = sorted({tool.tool_name for agent in agents for tool in agent.tool_registry if self._here(tool)})
        return [*(self._named(name) for name in names), self._unserved()]

    def _here(self, tool: Tool) -> bool:
        """True if this worker is one of those that run a tool."""
        if tool.queue is None:
            return not self._own_only
        return self._task_queue == tool.queue

    def _named(self, name: str) -> Callable[[ToolCall], Awaitable[ToolOutcome]]:
        @activity.defn(name=name)
        async def run(call: ToolCall) -> ToolOutcome:
            """Run the tool once. Not repeated after a crash, unless it is idempotent."""
            return await self._run(call)

        return run

    def _unserved(self) -> Callable[[Sequence[RawValue]], Awaitable[ToolOutcome]]:
        """The dynamic activity: without it, a lost call whose next worker lacks the tool would look never started."""

        @activity.defn(dynamic=True)
        async def run(args: Sequence[RawValue]) -> ToolOutcome:
            """Say what is known of a call of a tool that this worker does not have. Safe to repeat."""
            kind = activity.info().activity_type
            if kind.startswith(OUR_ACTIVITIES) or len(args) != 1:
                raise ApplicationError(f"this worker has no activity {kind!r}", type="NotFoundError")
            call: ToolCall = activity.payload_converter().from_payload(args[0].payload, ToolCall)
            return await self._run(call)

        return run

    async def _run(self, call: ToolCall) -> ToolOutcome:
        deployment = self._deployments.get(call.agent)
        tool = deployment.template.tool_registry.get(call.tool) if deployment else None
        begun = _begun_before(call, tool)
        if begun is not None:
            return begun
        if tool is None:
            detail = f"agent {call.agent!r} has no tool {call.tool!r} on this worker"
            return ToolOutcome(kind="never_started", detail=detail)
        if not self._here(tool):
            detail = f"{call.tool!r} is run by workers of {_queue(tool)}, and came to {self._task_queue!r}"
            return ToolOutcome(kind="never_started", detail=detail)
        if activity.info().activity_type != call.tool:
            detail = f"a call of {call.tool!r} was sent as activity {activity.info().activity_type!r}"
            return ToolOutcome(kind="never_started", detail=detail)
        if activity.is_worker_shutdown():
            raise ApplicationError(
                "handed back: the worker is stopping", type="WorkerShutdown", category=ApplicationErrorCategory.BENIGN
            )
        if not mark.has_begun() and _lapsed(call):
            detail = f"no worker had begun with it when its approval lapsed, at {call.not_after}"
            return ToolOutcome(kind="lapsed", detail=detail)
        if (misfit := _misfit(call, tool)) is not None:
            if activity.info().attempt < OTHER_CODE_ATTEMPTS:
                raise ApplicationError(misfit, type="OtherCode", category=ApplicationErrorCategory.BENIGN)
            return ToolOutcome(kind="unknown", not_run=not mark.has_begun(), detail=misfit)
        try:
            await mark.leave_mark()
        except AsyncActivityCancelledError:
            return ToolOutcome(kind="never_started", detail="the call was cancelled before it began")
        ended = threading.Event()
        try:
            async with heartbeats(INVOKING):
                return await execute(tool, call, in_thread=in_thread, heartbeat=_heartbeat(ended), clock=time.monotonic)
        finally:
            ended.set()


def _misfit(call: ToolCall, tool: Tool) -> str | None:
    """Why the input can't run on this worker as it was signed; None if it can. The code that asked took it as it is."""
    try:
        here = tool.canonical_input(call.input)
        same = canonical_json(plain_numbers(here)) == canonical_json(plain_numbers(call.input))
    except Exception as error:  # a validator's own, too
        return f"this worker has other code than the one that asked: {type(error).__name__}: {error}"
    if same:
        return None
    return (
        f"this worker has other code than the one that asked: its {call.tool!r} would run with "
        f"{canonical_json(here):.300}, and {canonical_json(call.input):.300} was decided on"
    )


def _lapsed(call: ToolCall) -> bool:
    """True if this attempt came too late for the call's approval, by the server's clock."""
    return call.not_after is not None and activity.info().started_time > datetime.fromisoformat(call.not_after)


def _queue(tool: Tool) -> str:
    return f"task queue {tool.queue!r}" if tool.queue else "the agent's own task queue"


def _begun_before(call: ToolCall, tool: Tool | None) -> ToolOutcome | None:
    """What an earlier attempt's mark means; None if the tool may run."""
    info = activity.info()
    if call.run not in (None, info.workflow_run_id):
        detail = "its cycle's workflow was reset, and may have run it before that"
        return ToolOutcome(kind="unknown", detail=detail)
    if not mark.has_begun():
        return None
    if tool is not None and tool.idempotent and info.attempt <= IDEMPOTENT_ATTEMPTS:
        return None
    detail = f"an attempt before number {info.attempt} had begun to run {call.tool!r}, and how it ended is not known"
    return ToolOutcome(kind="unknown", detail=detail)


def _heartbeat(ended: threading.Event) -> Callable[[], None]:
    """`tool_context.heartbeat`, for bodies on the event loop and in threads.

    A thread can't be cancelled; once its call has ended, its next heartbeat tells it to stop.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()

    def beat() -> None:
        if ended.is_set():
            raise ToolError("this call was cancelled or its worker stopped; nobody waits for its result")
        loop.call_soon_threadsafe(activity.heartbeat, INVOKING, context=context)

    return beat
