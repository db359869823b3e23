"""Whose a payload is: which session it belongs to, and whether anybody but our workers reads it."""

import hashlib
import re
from typing import Any
from urllib.parse import quote

from temporalio import activity
from temporalio.converter import StorageDriverActivityInfo, StorageDriverStoreContext, StorageDriverWorkflowInfo

from countersign.agent_core.wire import CYCLE_WORKFLOW, SESSION_WORKFLOW

_LONGEST, _KEPT = 200, 150
"""Of an id in a blob's name, percent-encoded; and what is kept of a longer one."""

_CYCLE = re.compile(r"/cycle-\d+\Z")


def session_of(workflow_id: str) -> str:
    """The id of the session that a workflow is, or is a cycle of."""
    return _CYCLE.sub("", workflow_id)


def is_own(target: Any) -> bool:
    """True if only our own workers read what is sent to this target.

    Those are the cycles, with the inputs and results of their activities; what an activity encodes by hand
    (no target); and the result of a cycle. The SDK gives that its parent's run but no type, while what
    clients send to a session bears no run unless they insist on one.

    Args:
        target: The SDK's idea of whom a payload is for.
    """
    if not isinstance(target, StorageDriverWorkflowInfo):
        return True
    return target.type == CYCLE_WORKFLOW or (target.type is None and target.run_id is not None)


def owned(context: StorageDriverStoreContext) -> StorageDriverStoreContext:
    """The context with the session as the target, whatever its run, cycle or activity.

    Drivers for buckets put the target into the names of what they write: all blobs of a session stand
    together, may be deleted with it, and are shared by all of its cycles.
    """
    target = context.target
    if isinstance(target, StorageDriverActivityInfo):
        return context
    namespace, workflow_id = (target.namespace, target.id) if target is not None else (None, None)
    if target is None and activity.in_activity():
        info = activity.info()
        namespace, workflow_id = info.namespace, info.workflow_id
    if namespace is None or workflow_id is None:
        return context
    return StorageDriverStoreContext(
        StorageDriverWorkflowInfo(namespace=namespace, id=session_of(workflow_id), type=SESSION_WORKFLOW)
    )


def nameable(workflow_id: str) -> str:
    """An id as it may stand in a blob's name: one that is long percent-encoded is cut; its digest and "~cut" follow.

    Stores refuse names of over 1,024 bytes, and a character outside ASCII takes up to twelve.
    """
    if len(quote(workflow_id, safe="")) <= _LONGEST:
        return workflow_id
    kept = workflow_id
    while len(quote(kept, safe="")) > _KEPT:
        kept = kept[:-1]
    return f"{kept}~{hashlib.sha256(workflow_id.encode()).hexdigest()[:32]}~cut"
