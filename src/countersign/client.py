"""Client code: start agents, answer their questions, get their results."""

from countersign.agent_client import AgentClient, SessionHandle

__all__ = ["AgentClient", "SessionHandle"]
