"""Why a worker can't answer for a session, from the failure that it left: it may lack a key or a store.

With encryption on, a failure says "Encoded failure" and no more; its type is in the clear, and whoever has the
worker's own key can read the rest.
"""

from collections.abc import Iterator
from contextlib import suppress

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.errordetails.v1 import QueryFailedFailure
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from countersign.agent_client.payloads.errors import DecryptionError, NotHereError, StorageError
from countersign.agent_client.unreadable import without_promise
from countersign.agent_core.errors import UnreadableHereError

LACKING = frozenset(
    {kind.__name__ for kind in (UnreadableHereError, DecryptionError, NotHereError, StorageError)}
    | {"NotReadAgainError"}  # of `workflows.intake`, which a command need not load
)
"""Types of the failure of a worker that lacks a key or a store."""

LACKS = "its worker lacks a key or a store that it needs"
GIVE_IT = "give the worker that key or store (COUNTERSIGN_ENCRYPTION_KEYS, COUNTERSIGN_STORAGE) and restart it"

_IN_ITS_LOG = "the worker's log names it"
_PERHAPS_FIRST = "perhaps the key that this process encrypts with, the first one in its file"
_ENCODED = "Encoded failure"
_LATEST_EVENTS = 50


async def lacked(error: Exception, client: Client, session_id: str) -> str | None:
    """What the worker lacks that could not answer a query, in words; None if that is not the cause.

    Args:
        error: How the query ended.
        client: Its converter reads the failure; the server is asked for that of the session's last task, if the
            query met none of its own.
        session_id: The session.
    """
    failure = _of_query(error) if isinstance(error, WorkflowQueryFailedError) else None
    if isinstance(error, WorkflowQueryFailedError) and error.message == _ENCODED and not _says_type(failure):
        return _PERHAPS_FIRST  # a session in the worker's memory, which could not read the query
    if failure is None and isinstance(error, RPCError):
        failure = await _of_last_task(client, session_id)
    if failure is None or not any(one.application_failure_info.type in LACKING for one in _chain(failure)):
        return None
    return await _words(failure, client.data_converter) or _IN_ITS_LOG


def _of_query(error: WorkflowQueryFailedError) -> Failure | None:
    cause = error.__context__  # the client keeps the message only
    if isinstance(cause, RPCError):
        for part in cause.grpc_status.details:
            found = QueryFailedFailure()
            if part.Unpack(found):
                return found.failure
    return None


async def _of_last_task(client: Client, session_id: str) -> Failure | None:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=session_id),
        maximum_page_size=_LATEST_EVENTS,
    )
    try:
        page = await client.workflow_service.get_workflow_execution_history_reverse(request)
    except RPCError:
        return None  # the query's own error is all that is known
    for event in page.history.events:
        if event.HasField("workflow_task_completed_event_attributes"):
            return None  # it is over
        if event.HasField("workflow_task_failed_event_attributes"):
            return event.workflow_task_failed_event_attributes.failure
    return None


def _says_type(failure: Failure | None) -> bool:
    return failure is not None and bool(failure.application_failure_info.type)


def _chain(failure: Failure) -> Iterator[Failure]:
    yield failure
    while failure.HasField("cause"):
        failure = failure.cause
        yield failure


async def _words(failure: Failure, converter: DataConverter) -> str:
    """What the worker said; "" if this process can't read it either."""
    with suppress(Exception):  # of whatever codec: a key that is not here, a store that is away
        told: BaseException | None = await converter.decode_failure(failure)
        while told is not None:
            if isinstance(told, ApplicationError) and told.type in LACKING and told.message != _ENCODED:
                return without_promise(told.message)
            told = told.__cause__
    return ""
