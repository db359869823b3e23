"""What can go wrong between client code and its sessions, in one tree.

    ClientError (a CountersignError)
    ├── ConnectionFailedError    the Temporal server or namespace can't be reached
    ├── AccessDeniedError        the server does not let this client do that
    ├── NoWorkerError            nobody answers for the session, so that it can't be asked
    ├── NoReplyError             not confirmed in time; it may or may not have been taken
    ├── SessionExistsError       the id is in use
    ├── SessionNotFoundError     no such session
    ├── SessionUnreadableError   what it says can't be read in this process, which lacks a key or a store
    ├── SessionEndedError        it can't be prompted or answered any more; `status` says how it ended
    └── AgentRunError            a turn failed; `error_type` and `detail` say why

An answer that the session refused is `AnswerRefused` of `agent_core.errors`; a value that is too
large to send is its `PayloadTooLargeError`. Temporal's own exceptions are translated into these
once, in `agent_client.translation`.
"""

from countersign.agent_client.shell import command
from countersign.agent_core.errors import CountersignError


class ClientError(CountersignError):
    """Base of what goes wrong between client code and its sessions.

    Attributes:
        session_id: The session that it is about; "" if it is about none, or that was not noted.
    """

    session_id: str = ""


class ConnectionFailedError(ClientError):
    """The Temporal server or its namespace can't be reached."""


class AccessDeniedError(ClientError):
    """The Temporal server does not accept this client's credentials for that."""


class NoWorkerError(ClientError):
    """No worker answers for the session at the moment. It is safe and goes on when one does."""


class NoReplyError(ClientError):
    """What was sent was not confirmed in time: it may or may not have been taken.

    Sending the same answer again is safe: one that was taken is acknowledged. A prompt sent again is another prompt,
    unless it is sent with the update id of the first.

    Attributes:
        update_id: The id under which it was sent.
    """

    def __init__(self, message: str, update_id: str = "") -> None:
        self.update_id = update_id
        super().__init__(message)


class SessionExistsError(ClientError):
    """A session of that id exists already, running or ended.

    Attributes:
        session_id: The id.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        super().__init__(
            f"session {session_id!r} exists already; choose another id, or leave it out to get a fresh one. "
            f"To see that session: {command('show', session_id)}"
        )


class SessionNotFoundError(ClientError):
    """No session has that id.

    Attributes:
        session_id: The id.
    """

    def __init__(self, session_id: str, namespace: str, found: str = "") -> None:
        self.session_id = session_id
        what = found or f"no session {session_id!r} in namespace {namespace!r}"
        super().__init__(f"{what}; list the sessions with: {command('list')}")


class SessionUnreadableError(ClientError):
    """What a session says can't be read in this process: it lacks a key or a store, or the value is damaged.

    The session is as it was. What was sent to it may have been taken: only the reply is unreadable.

    Attributes:
        session_id: The id.
    """

    def __init__(self, session_id: str, why: str) -> None:
        self.session_id = session_id
        super().__init__(f"session {session_id!r} can't be read here: {why}")


class SessionEndedError(ClientError):
    """The session has ended and takes nothing more.

    Attributes:
        session_id: The id.
        status: How it ended: "completed", "failed", "canceled", "terminated" or "timed_out".
    """

    def __init__(self, session_id: str, status: str, when: str = "") -> None:
        self.session_id, self.status = session_id, status
        at = f" at {when}" if when else ""
        super().__init__(f"session {session_id!r} has ended ({status}{at}) and takes nothing more; start a new one")


class AgentRunError(ClientError):
    """A turn failed.

    Attributes:
        session_id: The session.
        error_type: Name of the error's type, for instance "ModelAuthenticationError".
        detail: The error's text.
        origin: The hook, handler or tool that raised it, if one did.
    """

    def __init__(self, session_id: str, error_type: str, detail: str, origin: str | None = None) -> None:
        self.session_id, self.error_type, self.detail, self.origin = session_id, error_type, detail, origin
        where = f" in {origin}" if origin else ""
        super().__init__(f"session {session_id!r} failed{where}: {error_type}: {detail}")
