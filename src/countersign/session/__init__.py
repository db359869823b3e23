"""`strands.session` by our name: what keeps an in-process agent's session."""

from countersign.agent_client.session_files import FileSessionManager

__all__ = ["FileSessionManager"]
