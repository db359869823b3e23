"""Client code and the countersign command; the only door to Temporal from outside the worker.

Sessions are started by the name of their workflow. Of workflows and activities, nothing is needed but
the words that a session shows in the Temporal UI, and the list of its search attributes. Names load
when they are first used, so that the command starts without Temporal's client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    )
    from countersign.agent_client.events import SessionEvent
    from countersign.agent_client.fleet import FleetView
    from countersign.agent_client.listing import SessionSummary
    from countersign.agent_client.session import SessionHandle
    from countersign.agent_client.stopping import StopReport

__all__ = [
    "AccessDeniedError",
    "AgentClient",
    "AgentRunError",
    "ClientError",
    "ConnectionFailedError",
    "FleetView",
    "NoReplyError",
    "NoWorkerError",
    "SessionEndedError",
    "SessionEvent",
    "SessionExistsError",
    "SessionHandle",
    "SessionNotFoundError",
    "SessionSummary",
    "StopReport",
]

_ROLES = {
    "AgentClient": "client",
    "FleetView": "fleet",
    "SessionEvent": "events",
    "SessionHandle": "session",
    "SessionSummary": "listing",
    "StopReport": "stopping",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROLES.get(name, 'errors')}"), name)
