"""The mark that a tool has begun: left before it runs, and kept whatever the tool's own heartbeats say.

Whether a tool that was cut off has run can't be seen from outside. Before it is invoked, its activity has the server
record the heartbeat "invoking". The server keeps the details of the last heartbeat only, so those of a tool that
heartbeats by itself, as Temporal's documentation tells long activities to do, follow after the mark.
"""

from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ActivityOutboundInterceptor, Interceptor

from countersign.agent_core.wire import INVOKING, OUR_ACTIVITIES


async def leave_mark() -> None:
    """Have the server record that the tool is about to run; returns when it has.

    `activity.heartbeat` only queues a heartbeat. This is the call itself, awaited.

    Raises:
        AsyncActivityCancelledError: If the call is not wanted any more; the tool must not run then.
    """
    info = activity.info()
    handle = activity.client().get_async_activity_handle(task_token=info.task_token)
    await handle.heartbeat(INVOKING)


def has_begun() -> bool:
    """True if an earlier attempt has left the mark. Only what has begun heartbeats with details."""
    return bool(activity.info().heartbeat_details)


class MarkKeeper(Interceptor):
    """Worker interceptor; every worker that runs tools needs it."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See temporalio."""
        return _Inbound(next)


class _Inbound(ActivityInboundInterceptor):
    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(ActivityOutboundInterceptor):
    def heartbeat(self, *details: Any) -> None:
        ours = self.info().activity_type.startswith(OUR_ACTIVITIES)
        super().heartbeat(*(details if ours or details[:1] == (INVOKING,) else (INVOKING, *details)))
