"""`strands.session.file_session_manager` by our name."""

from countersign.agent_client.session_files import FileSessionManager

__all__ = ["FileSessionManager"]
