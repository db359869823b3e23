"""Client code: start agents, answer their questions, get their results; and what that can return and raise."""

from countersign.agent_client.client import AgentClient
from countersign.agent_client.errors import (
    AccessDeniedError,
    AgentRunError,
    ClientError,
    ConnectionFailedError,
    NoReplyError,
    NoWorkerError,
    SessionEndedError,
    SessionExistsError,
    SessionNotFoundError,
    SessionUnreadableError,
)
from countersign.agent_client.events import SessionEvent
from countersign.agent_client.fleet import FleetView
from countersign.agent_client.listing import SessionSummary
from countersign.agent_client.session import SessionHandle
from countersign.agent_client.session_status import SessionStatus
from countersign.agent_client.settling import Outcome
from countersign.agent_client.stopping import StopReport
from countersign.agent_client.waiting_calls import PendingCall, WaitingCall
from countersign.agent_client.workers import Build
from countersign.agent_core.errors import AnswerRefused, PayloadTooLargeError
from countersign.agent_core.limits import Limits
from countersign.agent_core.messages import Message, Usage
from countersign.agent_core.wire import (
    AcceptedAnswer,
    Answer,
    AnswerReceipt,
    AuditEntry,
    ErrorInfo,
    Question,
    SessionResult,
    ShownCall,
)

__all__ = [
    "AcceptedAnswer",
    "AccessDeniedError",
    "AgentClient",
    "AgentRunError",
    "Answer",
    "AnswerReceipt",
    "AnswerRefused",
    "AuditEntry",
    "Build",
    "ClientError",
    "ConnectionFailedError",
    "ErrorInfo",
    "FleetView",
    "Limits",
    "Message",
    "NoReplyError",
    "NoWorkerError",
    "Outcome",
    "PayloadTooLargeError",
    "PendingCall",
    "Question",
    "SessionEndedError",
    "SessionEvent",
    "SessionExistsError",
    "SessionHandle",
    "SessionNotFoundError",
    "SessionResult",
    "SessionStatus",
    "SessionSummary",
    "SessionUnreadableError",
    "ShownCall",
    "StopReport",
    "Usage",
    "WaitingCall",
]
