"""The edge: Temporal's exceptions become this project's, here and nowhere else.

Nothing is sent from here but the one look at a session that turns "not found" into how it ended.
"""

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError, TemporalError
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.errors import (
    AccessDeniedError,
    ClientError,
    ConnectionFailedError,
    NoWorkerError,
    SessionEndedError,
    SessionNotFoundError,
)
from countersign.agent_client.shell import command
from countersign.agent_client.worker_faults import lacked
from countersign.agent_client.workers import no_answer, no_worker, task_fails, worker_lacks
from countersign.agent_core.errors import AnswerRefused, CountersignError
from countersign.agent_core.wire import SESSION_WORKFLOW

UPDATE_LOST = frozenset({"AcceptedUpdateCompletedWorkflow", "UnprocessedUpdate"})
"""Types of the failure of an update that nobody has judged: its run ended under it, or its worker went away."""

_TRANSIENT = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.UNKNOWN,
}

_NOBODY_ANSWERS = {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED, RPCStatusCode.FAILED_PRECONDITION}
"""What a query ends with if no worker takes it; which one depends on who loses patience first."""

_TASK_FAILS = "task in failed state"
"""In the server's words for a query that it does not pass on, because the worker fails on that session."""


_TASK_HAS_FAILED = "unexpected workflow task failure"
"""In the server's words for an update that came into a task that failed. At the third failure it says `_TASK_FAILS`."""


def worker_fails(error: RPCError) -> bool:
    """True for a query that a session can't answer because its worker fails on it."""
    return error.status == RPCStatusCode.FAILED_PRECONDITION and _TASK_FAILS in error.message.lower()


def is_transient(error: BaseException) -> bool:
    """True if the very same request may be sent again with hope: no reply, or an update that nobody has judged."""
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return True
    if isinstance(error, WorkflowUpdateFailedError):
        return isinstance(error.cause, ApplicationError) and error.cause.type in UPDATE_LOST
    return isinstance(error, RPCError) and (error.status in _TRANSIENT or _came_into_failure(error))


def _came_into_failure(error: RPCError) -> bool:
    return error.status == RPCStatusCode.FAILED_PRECONDITION and _TASK_HAS_FAILED in error.message.lower()


def refusal(error: WorkflowUpdateFailedError) -> AnswerRefused:
    """A refused update as the refusal that the session meant."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return AnswerRefused(cause.type or "refused", cause.message)
    return AnswerRefused("refused", str(cause))


async def translated(error: Exception, client: Client, session_id: str | None = None) -> CountersignError:
    """What an exception of Temporal's client means here.

    Args:
        error: What the client raised.
        client: Asked how a session ended, if the server says that it isn't there.
        session_id: The session that it was about, if any.
    """
    if isinstance(error, CountersignError):
        return error
    if isinstance(error, WorkflowUpdateFailedError):
        return refusal(error)
    if isinstance(error, WorkflowQueryFailedError):
        if session_id is not None and (what := await lacked(error, client, session_id)) is not None:
            return worker_lacks(session_id, what)
        return ClientError(f"session {session_id!r} could not answer the query: {error.message}")
    if isinstance(error, RPCError):
        return await _rpc_error(error, client, session_id)
    return ClientError(f"{type(error).__name__}: {error}")


async def failed_start(error: TemporalError, client: Client, session_id: str) -> CountersignError:
    """What an exception means that came instead of the confirmation that a session has started."""
    found = await translated(error, client)
    if is_transient(error):
        found = ConnectionFailedError(
            f"{found}. Whether session {session_id!r} has started is not known: {command('show', session_id)} tells; "
            "started again with that id it does not run twice"
        )
    if isinstance(found, ClientError):
        found.session_id = session_id
    return found


async def _rpc_error(error: RPCError, client: Client, session_id: str | None) -> CountersignError:
    known = server_trouble(error, client.service_client.config.target_host, client.namespace)
    if known is not None:
        return known
    if session_id is not None and error.status == RPCStatusCode.NOT_FOUND:
        return await end_of(client, session_id) or NoWorkerError(
            f"session {session_id!r} was between two runs; try again"
        )
    if session_id is not None and error.status in _NOBODY_ANSWERS:
        return await _unanswered(error, client, session_id)
    return _refused(error, client)


def _refused(error: RPCError, client: Client) -> ClientError:
    """A request that the server has not carried out, for a reason that says nothing of what it was about."""
    if error.status in _TRANSIENT:
        return ConnectionFailedError(
            f"the Temporal server at {client.service_client.config.target_host} gave no answer "
            f"({error.status.name}: {error.message}); check that it is well, and whether it limits requests"
        )
    return ClientError(f"the Temporal server refused the request ({error.status.name}): {error.message}")


def server_trouble(error: RPCError, address: str, namespace: str) -> ClientError | None:
    """What is wrong between this client and the server, whatever session it was about; None if nothing is."""
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return AccessDeniedError(
            f"the Temporal server at {address} refused access to namespace {namespace!r} ({error.message}); "
            "check TEMPORAL_API_KEY, the TLS certificate or the profile"
        )
    if error.status == RPCStatusCode.UNAVAILABLE:
        return ConnectionFailedError(
            f"the Temporal server at {address} can't be reached ({error.message}); check that it runs"
        )
    if error.status == RPCStatusCode.NOT_FOUND and _names_namespace(error):
        return ConnectionFailedError(
            f"the Temporal server at {address} has no namespace {namespace!r}; check --namespace or TEMPORAL_NAMESPACE"
        )
    return None


def _names_namespace(error: RPCError) -> bool:
    detail = NamespaceNotFoundFailure()
    return any(part.Unpack(detail) for part in error.grpc_status.details)


async def _unanswered(error: RPCError, client: Client, session_id: str) -> ClientError:
    """What to say of a session that was asked in vain."""
    try:
        seen = await described(client, session_id)
    except ClientError as other:
        return other
    if error.status == RPCStatusCode.FAILED_PRECONDITION and not worker_fails(error):
        return await no_worker(client, seen)
    if (what := await lacked(error, client, session_id)) is not None:
        return worker_lacks(session_id, what)
    return task_fails(seen) if worker_fails(error) else await no_answer(client, seen)


async def described(client: Client, session_id: str) -> WorkflowExecutionDescription:
    """What the server knows of a session, with no worker.

    Raises:
        SessionNotFoundError: If there is none of that id.
        ConnectionFailedError, AccessDeniedError: If the server can't be asked.
    """
    try:
        seen = await client.get_workflow_handle(session_id).describe()
    except RPCError as error:
        known = server_trouble(error, client.service_client.config.target_host, client.namespace)
        if known is None and error.status == RPCStatusCode.NOT_FOUND:
            known = SessionNotFoundError(session_id, client.namespace)
        raise known or _refused(error, client) from error
    if seen.workflow_type != SESSION_WORKFLOW:
        raise SessionNotFoundError(
            session_id, client.namespace, f"workflow {session_id!r} is of type {seen.workflow_type}, not a session"
        )
    return seen


async def end_of(client: Client, session_id: str) -> ClientError | None:
    """How a session ended, that there is none, or why that can't be asked; None while it runs."""
    try:
        seen = await described(client, session_id)
    except ClientError as error:
        return error
    if seen.status is None or seen.status == WorkflowExecutionStatus.RUNNING:
        return None
    when = seen.close_time.isoformat(timespec="seconds") if seen.close_time else ""
    return SessionEndedError(session_id, seen.status.name.lower(), when)
