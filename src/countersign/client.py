"""Client code: start agents, answer their questions, get their results; and what that can raise."""

from countersign.agent_client import (
    AccessDeniedError,
    AgentClient,
    AgentRunError,
    ClientError,
    ConnectionFailedError,
    NoReplyError,
    NoWorkerError,
    SessionEndedError,
    SessionExistsError,
    SessionHandle,
    SessionNotFoundError,
    SessionSummary,
)
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.wire import Question, SessionResult

__all__ = [
    "AccessDeniedError",
    "AgentClient",
    "AgentRunError",
    "AnswerRefused",
    "ClientError",
    "ConnectionFailedError",
    "NoReplyError",
    "NoWorkerError",
    "Question",
    "SessionEndedError",
    "SessionExistsError",
    "SessionHandle",
    "SessionNotFoundError",
    "SessionResult",
    "SessionSummary",
]
