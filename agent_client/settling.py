"""Waiting until a session's loop has stopped, and with what: questions, or the model's last message."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from countersign.agent_client.errors import AgentRunError, NoWorkerError
from countersign.agent_client.listing import ENDED_STATUSES
from countersign.agent_client.reading import SessionReader, message_count, position_of
from countersign.agent_client.sending import backoff_s
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import Question, SessionResult

if TYPE_CHECKING:
    from countersign.agent_client.session import SessionHandle

AT_REST = ("waiting", "idle")
"""What a session says when its loop has stopped."""


async def settled(
    reader: SessionReader, at: Collection[str] = AT_REST, *, patient: bool = True
) -> tuple[Mapping[str, Any], list[Question]]:
    """Wait until a session's loop has stopped.

    Args:
        reader: The session.
        at: Statuses that count as that; its end does, in any case.
        patient: Whether to wait for a worker that is away. With patience, it is asked only when the session's history
            has grown.

    Returns:
        Its status, and the questions that it waits with. Of a session that ended and has no worker, only
        that it ended is known.

    Raises:
        NoWorkerError: Without patience.
    """
    pauses, looked_at = backoff_s(0.05, 2.0 if patient else 1.0), None
    while True:
        try:
            position = await position_of(reader)
            if position != looked_at or not patient:
                status = await reader.status()
                waits = status["status"] == "waiting" and "waiting" in at
                if waits and (questions := await reader.interrupts()):  # none: they were answered just now
                    return status, questions
                if status["ended"] is not None or (status["status"] in at and not waits):
                    return status, []
                looked_at = position
        except NoWorkerError:
            if not patient:
                raise
            if (summary := await reader.summary()).ended:
                ended = ENDED_STATUSES[summary.status].name.lower()
                return {"status": "closed", "ended": ended, "stop_reason": None, "error": None}, []
        await asyncio.sleep(next(pauses))


@dataclass
class Outcome:
    """What a loop has come to.

    Attributes:
        questions: What it asks; empty if it is done.
        message: The model's last message, if it is done.
        stop_reason: Why it has stopped.
        structured_output: What it has led to, as far as the session's result says so.
    """

    questions: list[Question] = field(default_factory=list)
    message: Message | None = None
    stop_reason: str | None = None
    structured_output: JsonObject | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "stop_reason": self.stop_reason,
            "interrupts": [question.model_dump(mode="json") for question in self.questions],
            "message": self.message,
            "structured_output": self.structured_output,
        }


def outcome_of(result: SessionResult) -> Outcome:
    """The outcome that a result tells of."""
    message = None if result.interrupts else result.message
    return Outcome(result.interrupts, message, result.stop_reason, result.structured_output)


async def next_outcome(session: "SessionHandle") -> Outcome:
    """Wait for a session's next outcome.

    Args:
        session: The session.

    Raises:
        AgentRunError: The turn failed.
    """
    status, questions = await settled(session)
    if questions:
        return Outcome(questions, stop_reason="interrupt")
    if status["ended"] is not None or status["lifetime"] == "turn":
        return outcome_of(await session.result())
    if status["error"] is not None:
        raise AgentRunError(
            session.id, status["error"]["type"], status["error"]["message"], status["error"].get("origin")
        )
    # With structured output the last message is a result; the one before it says what the model has handed over.
    end = [message async for message in session.transcript(max(0, await message_count(session) - 2))]
    messages = [message for message in end if message["role"] == "assistant"] or end
    return Outcome(message=messages[-1] if messages else None, stop_reason=status["stop_reason"])
