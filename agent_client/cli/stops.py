"""Where a session's loop has stopped: at questions, or with the model's last message; as commands print it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.looking import print_questions
from countersign.agent_client.cli.messages import print_message
from countersign.agent_client.cli.terminal import print_json

if TYPE_CHECKING:
    from countersign.agent_client.session import SessionHandle
    from countersign.agent_core.messages import Message
    from countersign.agent_core.wire import Question, SessionResult


@dataclass
class Stop:
    """Where a loop has stopped.

    Attributes:
        questions: What it asks; empty if it is done.
        message: The model's last message, if it is done.
        stop_reason: Why it has stopped.
    """

    questions: "list[Question]" = field(default_factory=list)
    message: "Message | None" = None
    stop_reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "stop_reason": self.stop_reason,
            "interrupts": [question.model_dump(mode="json") for question in self.questions],
            "message": self.message,
        }


def stop_of(result: "SessionResult") -> Stop:
    """The stop that a result tells of."""
    return Stop(result.interrupts, None if result.interrupts else result.message, result.stop_reason)


async def next_stop(handle: "SessionHandle", stays_open: bool) -> Stop:
    """Wait for a session's next stop.

    Args:
        handle: The session.
        stays_open: True if it does not end with its turn.

    Raises:
        AgentRunError: The turn failed.
    """
    if questions := await handle.wait_for_questions():
        return Stop(questions, stop_reason="interrupt")
    if not stays_open:
        return stop_of(await handle.result())
    status = await handle.status()
    if status["error"] is not None:
        from countersign.agent_client.errors import AgentRunError

        raise AgentRunError(handle.id, status["error"]["type"], status["error"]["message"])
    messages = [message async for message in handle.transcript(max(0, await handle.message_count() - 1))]
    return Stop(message=messages[-1] if messages else None, stop_reason=status["stop_reason"])


def print_stop(session: str, stop: Stop, as_json: bool) -> None:
    """The questions, or the last message."""
    if as_json:
        print_json({"session_id": session, **stop.as_json()})
    elif stop.questions:
        print_questions(session, stop.questions)
    elif stop.message is not None:
        print_message(stop.message)
