"""Puts Temporal workers together, one for each task queue; they do not poll yet."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio.client import Client
from temporalio.worker import Worker

from countersign.activities.heartbeats import HEARTBEAT_S
from countersign.activities.mark import MarkKeeper
from countersign.activities.registry import activities_for, tool_activities_for
from countersign.activities.segments import Segments
from countersign.serving.cold_queries import forget_after_cold_queries
from countersign.serving.settings import WorkerSettings
from countersign.serving.shares import Share
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle, PinnedCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner
from countersign.workflows.session import AgentSession

LEAST_WORKFLOW_TASKS = 2
"""Of a queue: one for new work, one for what the worker has in its cache. Temporal polls with no less."""


def build_workers(client: Client, settings: WorkerSettings, shares: Sequence[Share]) -> list[Worker]:
    """Put a worker together for each share.

    What runs an agent's effects (activities, their rates) is each queue's own. What costs the process
    (workflow tasks, cached workflows) is shared out, so that ten queues don't need ten times as much.

    Args:
        client: A connected client.
        settings: The process's settings.
        shares: What is served on which queue.

    Raises:
        CountersignError: If policy code can't be policed, or a model can't be made.
    """
    if all(share.tools_only for share in shares):
        return [_tool_worker(client, settings, share) for share in shares]
    cycle = AgentCycle if settings.deployment is None else PinnedCycle
    runner, segments = policed_runner(settings.agents), Segments(settings.storage_cache_mb * 1_000_000)
    workers = []
    for share in shares:
        host.install(share.task_queue, share.deployments, settings.default_deadline_s)
        workers.append(
            Worker(
                client,
                workflows=[AgentSession, cycle],
                activities=activities_for(share.deployments, share.task_queue, segments),
                workflow_runner=runner,
                interceptors=[IntakeGuard(), MarkKeeper()],
                max_concurrent_workflow_tasks=max(
                    LEAST_WORKFLOW_TASKS, settings.max_concurrent_workflow_tasks // len(shares)
                ),
                # Without a cache each step replays its whole history: only if 0 is asked for.
                max_cached_workflows=max(
                    min(1, settings.max_cached_workflows), settings.max_cached_workflows // len(shares)
                ),
                sticky_queue_schedule_to_start_timeout=timedelta(seconds=settings.sticky_timeout_s),
                **_bounds(settings, share),
            )
        )
        forget_after_cold_queries(workers[-1])
    return workers


def crowded(settings: WorkerSettings, shares: Sequence[Share]) -> str | None:
    """That a process serves more queues than its bound of workflow tasks is meant for; None if it does not."""
    at_once = LEAST_WORKFLOW_TASKS * len(shares)
    if settings.tools_only or at_once <= settings.max_concurrent_workflow_tasks:
        return None
    return (
        f"{len(shares)} task queues need {LEAST_WORKFLOW_TASKS} workflow tasks each: up to {at_once} at once, where "
        f"--max-concurrent-workflow-tasks says {settings.max_concurrent_workflow_tasks}. If they overload this machine "
        "(deadlocks in the log), give the agents to several processes with --agents, or one queue to several agents"
    )


def _tool_worker(client: Client, settings: WorkerSettings, share: Share) -> Worker:
    """A worker that holds what its tools need and runs nothing else: no workflow ever reaches it."""
    activities = tool_activities_for(share.deployments, share.task_queue)
    return Worker(client, activities=activities, interceptors=[MarkKeeper()], **_bounds(settings, share))


def _bounds(settings: WorkerSettings, share: Share) -> Any:
    """What every worker has, of this queue."""
    return {
        "task_queue": share.task_queue,
        "max_concurrent_activities": settings.max_concurrent_activities,
        "max_activities_per_second": settings.max_activities_per_second,
        "max_task_queue_activities_per_second": settings.max_task_queue_activities_per_second,
        # A call that the worker hands to itself passes by the server, and by the server's count.
        "disable_eager_activity_execution": settings.max_task_queue_activities_per_second is not None,
        # The SDK would send a heartbeat every 8 s: one that is late would pass for a lost worker.
        "max_heartbeat_throttle_interval": timedelta(seconds=HEARTBEAT_S),
        "graceful_shutdown_timeout": timedelta(seconds=settings.graceful_shutdown_s),
        "deployment_config": settings.deployment,
    }
