"""Runs tools: one activity type per tool, named after it.

Whether a tool that was cut off has run can't be seen from outside, so the activity leaves a mark
first: before it invokes the tool it has the server record the heartbeat "invoking". A later
attempt that finds the mark does not run the tool again, unless the tool is idempotent.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
from temporalio import activity

from countersign.activities.model import heartbeats
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.tools import Tool
from countersign.agent_core.tools.execution import execute
from countersign.agent_core.wire import ToolCall, ToolOutcome

MARK = "invoking"
THREADS = 200
"""Sync tools that may run at once; the worker's own bound on activities is what counts."""

ToolActivity = Callable[[ToolCall], Awaitable[ToolOutcome]]


def tool_activities(deployments: Mapping[str, AgentDeployment]) -> list[ToolActivity]:
    """An activity for each tool name of the agents; it finds the agent's tool by the call."""
    names = {tool.tool_name for deployment in deployments.values() for tool in deployment.template.tool_registry}
    return [_tool_activity(name, deployments) for name in sorted(names)]


def _tool_activity(name: str, deployments: Mapping[str, AgentDeployment]) -> ToolActivity:
    threads: list[anyio.CapacityLimiter] = []

    async def in_thread(function: Callable[[], Any]) -> Any:
        if not threads:
            threads.append(anyio.CapacityLimiter(THREADS))
        return await anyio.to_thread.run_sync(function, limiter=threads[0], abandon_on_cancel=True)

    @activity.defn(name=name)
    async def run(call: ToolCall) -> ToolOutcome:
        """Run the tool once. Not repeated after a crash, unless it is idempotent."""
        deployment = deployments.get(call.agent)
        tool = deployment.template.tool_registry.get(call.tool) if deployment else None
        if tool is None:
            return ToolOutcome(
                kind="never_started", detail=f"agent {call.agent!r} has no tool {call.tool!r} on this worker"
            )
        unknown = _unknown_outcome(tool)
        if unknown is not None:
            return unknown
        await _mark()
        async with heartbeats(MARK):
            return await execute(tool, call, in_thread=in_thread, heartbeat=lambda: activity.heartbeat(MARK))

    return run


def _unknown_outcome(tool: Tool) -> ToolOutcome | None:
    """What an earlier attempt's mark means; None if the tool may run."""
    info = activity.info()
    if tool.idempotent or MARK not in info.heartbeat_details:
        return None
    return ToolOutcome(
        kind="unknown",
        detail=f"attempt {info.attempt - 1} had begun to run {tool.tool_name!r} when its worker was lost",
    )


async def _mark() -> None:
    """Have the server record that the tool is about to run; returns when it has."""
    info = activity.info()
    handle = activity.client().get_async_activity_handle(task_token=info.task_token)
    await handle.heartbeat(MARK)
