"""Following one session as it goes: what is new since the last look. Changes nothing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.exceptions import TemporalError

from countersign.agent_client.errors import NoWorkerError
from countersign.agent_client.sending import uncancelled, within
from countersign.agent_client.session import SessionHandle
from countersign.agent_client.translation import translated
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import TRANSCRIPT_QUERY, Question

T = TypeVar("T")

_LOOK_S = 3.0
"""A worker that lives answers sooner; one that died is noticed by the server much later."""


@dataclass(frozen=True)
class Glimpse:
    """A session at one moment.

    Attributes:
        agent: Its agent.
        word: "running", "waiting", "idle" or "closed".
        turn: Number of its present or last turn.
        ended: How its workflow ended; None while it runs.
        stop_reason: How its last turn ended, or "interrupt".
        error: `{"type", "message"}` of its last turn, if that failed.
        messages: What was added to the conversation since the last look.
        questions: The open questions.
    """

    agent: str
    word: str
    turn: int
    ended: str | None = None
    stop_reason: str | None = None
    error: JsonObject | None = None
    messages: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


class Follower:
    """Looks at one session again and again.

    Args:
        temporal: A connected Temporal client.
        session: The session.
    """

    def __init__(self, temporal: Client, session: SessionHandle) -> None:
        self._temporal, self._session = temporal, session
        self._seen = 0
        self._last: tuple[Any, ...] = ()

    async def look(self) -> Glimpse:
        """The session as it is now.

        Raises:
            NoWorkerError: Nobody answers for it at the moment.
            ConnectionFailedError: The server can't be asked.
            SessionNotFoundError: There is no such session.
        """
        status = await self._soon(self._session.status)
        mark = tuple(status[name] for name in ("status", "since", "turn", "cycle"))
        messages = await self._soon(self._new_messages) if mark != self._last else []
        self._last = mark
        questions = await self._soon(self._session.interrupts) if status["open_questions"] else []
        return Glimpse(
            agent=status["agent"],
            word=status["status"],
            turn=status["turn"],
            ended=status["ended"],
            stop_reason=status["stop_reason"],
            error=status["error"],
            messages=messages,
            questions=questions,
        )

    async def is_open(self, question: Question) -> bool:
        """True if the question still waits, unchanged."""
        found = await self._soon(self._session.interrupts)
        return any((item.id, item.digest) == (question.id, question.digest) for item in found)

    async def fate(self, question: Question) -> JsonObject:
        """What became of a question that is not open any more.

        Returns:
            `{"event": "answered", "answer": {...}}`, or with event "expired", "question_withdrawn"
            or "gone" if nothing is known.
        """
        for entry in reversed(await self._soon(self._session.audit)):
            known = entry.event in ("answered", "expired", "question_withdrawn")
            if known and entry.detail.get("question") == question.id:
                return {"event": entry.event, "answer": entry.detail.get("answer")}
        return {"event": "gone", "answer": None}

    async def _new_messages(self) -> list[Message]:
        handle = self._temporal.get_workflow_handle(self._session.id)
        found: list[Message] = []
        start: int | None = self._seen
        while start is not None:
            argument = {"start": start}
            try:
                page = await uncancelled(lambda argument=argument: handle.query(TRANSCRIPT_QUERY, argument))  # type: ignore[misc]  # a default binds it
            except TemporalError as error:
                raise await translated(error, self._temporal, self._session.id) from error
            found += page["messages"]
            start = page["next"]
            self._seen = page["total"]  # less than before if a hook has rewritten the conversation
        return found

    async def _soon(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await within(_LOOK_S, call)
        except TimeoutError:
            raise NoWorkerError(f"no worker answers for session {self._session.id!r} at the moment") from None
