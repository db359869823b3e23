"""Reading a session that changes between two requests."""

from datetime import UTC, datetime
from types import SimpleNamespace

from temporalio.client import WorkflowExecutionStatus

from countersign.agent_client.reading import SessionReader


class EndsMeanwhile:
    """Temporal's client, of a session that ends after it was asked for the first time."""

    def __init__(self):
        self._answers = [{"status": "running", "stop_reason": None}, {"status": "closed", "stop_reason": "cancelled"}]

    def get_workflow_handle(self, session_id):
        """The handle of that session."""
        return self

    async def query(self, *_, **__):
        """What the session says of itself, then and later."""
        return self._answers.pop(0)

    async def describe(self):
        """By now it has ended."""
        closed = datetime(2026, 1, 1, tzinfo=UTC)
        return SimpleNamespace(
            workflow_type="AgentSession", status=WorkflowExecutionStatus.COMPLETED, close_time=closed
        )


async def test_a_session_that_ends_while_it_is_asked_says_how():
    """Not what it said while it still ran, beside the word that it has ended."""
    status = await SessionReader(EndsMeanwhile(), "s").status()
    assert (status["status"], status["ended"], status["stop_reason"]) == ("closed", "completed", "cancelled")
