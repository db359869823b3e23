"""Keeps a query from spoiling the history of a session that its worker does not know yet.

After a worker was lost, a query may be the first thing that the next one gets of a session. To answer it, Temporal's
core (of the SDK 1.35) applies the events that no workflow task has handled yet, and holds back the commands that
follow for the next task. If that task brings an update, the update's commands come after them; in a replay of this
very history the update comes first. Such a session can't be taken over by any worker any more (TMPRL1100,
temporalio/sdk-rust issue 1146). So a worker forgets a session right after such a query: the next task begins with a
replay, as it will be later on.
"""

import logging
from typing import Any

from temporalio.worker import Worker

logger = logging.getLogger(__name__)


def forget_after_cold_queries(worker: Worker) -> None:
    """Let a worker forget each workflow that a query made it apply new events of, before it has done any task of it.

    Args:
        worker: It does not poll yet. One of a later SDK that keeps its insides elsewhere is left alone, with a warning.
    """
    bridge: Any = getattr(worker, "_bridge_worker", None)  # no public way to see activations, or to evict a workflow
    poll = getattr(bridge, "poll_workflow_activation", None)
    if poll is None or not hasattr(bridge, "request_workflow_eviction"):
        logger.warning(
            "this SDK hides what a worker polls: a query right after a worker was lost may spoil a session's history "
            "if the SDK still has temporalio/sdk-rust issue 1146; temporalio 1.35 can be guarded"
        )
        return
    rebuilt: set[str] = set()  # runs that were replayed here and have met nothing new so far
    ahead: set[str] = set()  # runs whose last activation was the first new one after that

    async def polled() -> Any:
        activation = await poll()
        run, kinds = activation.run_id, {job.WhichOneof("variant") for job in activation.jobs}
        if "remove_from_cache" in kinds:
            rebuilt.discard(run)
            ahead.discard(run)
        elif kinds == {"query_workflow"}:
            if run in ahead:
                ahead.discard(run)
                bridge.request_workflow_eviction(run)
        elif activation.is_replaying:
            if "initialize_workflow" in kinds:
                rebuilt.add(run)
        elif run in rebuilt:
            rebuilt.discard(run)
            ahead.add(run)
        else:
            ahead.discard(run)
        return activation

    bridge.poll_workflow_activation = polled
