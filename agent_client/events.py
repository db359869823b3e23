"""Following one session: what happens to it, as a stream of events, from its queries.

Its worker is asked only when its history has grown: one that waits, for however long, costs its worker nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from temporalio.client import Client

from countersign.agent_client.ending import result_of
from countersign.agent_client.errors import AgentRunError, ConnectionFailedError, NoWorkerError, SessionEndedError
from countersign.agent_client.fates import Fate, fate_of
from countersign.agent_client.reading import SessionReader, message_count, numbered, position_of
from countersign.agent_client.sending import backoff_s
from countersign.agent_client.waiting_calls import WaitingCall
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import AuditEntry, Question

EventKind = Literal[
    "status", "message", "question", "answered", "withdrawn", "expired", "call_waits", "away", "back", "ended"
]

_CHANGES_WITH = ("status", "since", "turn", "cycle", "open_questions", "queued_prompts", "ended")
"""What the status query says whenever anything has happened; while it stays, nothing else is asked."""

_STATUS = ("status", "since", "turn", "stop_reason", "error")
"""What a status event says; the first three change whenever the session begins or ends something."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 0.5
_AWAY_PAUSE_S = 1.0
_QUIET_LOOKS = 5
"""After so many looks at a running session that show nothing new, its worker is asked anyway: it may be away.

Its calls are looked at, too.
"""

_RESULT_PATIENCE = timedelta(seconds=10)


@dataclass(frozen=True)
class SessionEvent:
    """One thing that happened.

    Attributes:
        kind: "message", "question" (a `Question`), "answered", "withdrawn", "expired"; "status" (it runs,
            waits, is idle: the last of what was seen at once); "call_waits" (a `WaitingCall`: a tool's own queue
            has no free worker); "away" (no worker or no server; it is
            waited for), "back"; "ended".
        detail: What there is to it, plain JSON.
    """

    kind: EventKind
    detail: JsonObject = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        """As one plain object: `{"event": kind, ...}`."""
        return {"event": self.kind, **self.detail}


async def followed(temporal: Client, reader: SessionReader, tail: int | None) -> AsyncIterator[SessionEvent]:
    """See `SessionHandle.follow`."""
    view, pauses = _View(tail), backoff_s(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
    away = ended = False
    calls, quiet = _Calls(), 0
    await reader.summary()  # one that never was is an error, not something to wait for
    while True:
        try:
            if ended:
                events = [await _end(temporal, reader)]
            else:
                due = quiet >= _QUIET_LOOKS
                events, ended = await view.changes(reader, anyway=due)
                if due and view.runs and not events:
                    events = await calls.waiting(reader)
                quiet = 0 if due or events or not view.runs else quiet + 1
        except (NoWorkerError, ConnectionFailedError) as error:
            if (end := await _ended_unasked(temporal, reader)) is not None:
                yield end
                return
            if not away:
                away = True
                yield SessionEvent("away", {"message": str(error)})
            await asyncio.sleep(_AWAY_PAUSE_S)
            continue
        if away:
            away = False
            yield SessionEvent("back")
        for event in events:
            yield event
            if event.kind == "ended":
                return
        if ended:
            continue
        if events:
            pauses = backoff_s(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        await asyncio.sleep(next(pauses))


class _View:
    """What was told of a session so far.

    Args:
        tail: Messages to begin with; None for all.
    """

    def __init__(self, tail: int | None) -> None:
        self._tail = tail
        self._position: tuple[str, int] | None = None
        self._seen: JsonObject | None = None
        self._messages = 0
        self._questions: set[tuple[str, str]] = set()
        self._last_line: AuditEntry | None = None

    @property
    def runs(self) -> bool:
        """True if it ran when it was looked at last."""
        return self._seen is not None and self._seen["status"] == "running"

    async def changes(self, reader: SessionReader, *, anyway: bool) -> tuple[list[SessionEvent], bool]:
        """What has happened since the last time, and whether the session has ended.

        Args:
            reader: The session.
            anyway: True to ask its worker even if its history is what it was.
        """
        position = await position_of(reader)  # before the queries: what comes in between is asked for the next time
        if position == self._position and not anyway:
            return [], False
        status: Mapping[str, Any] = await reader.status()
        seen = {name: status[name] for name in _CHANGES_WITH}
        ended = status["ended"] is not None
        if seen == self._seen:
            self._position = position
            return [], ended
        first = self._messages
        if self._seen is None and self._tail is not None:
            first = max(0, await message_count(reader) - self._tail)
        # Everything is fetched before anything counts as told: a worker may go away in between. Messages come last, so
        # that none which led to a question is missing before it; the audit first, so that an answer comes after it.
        audit, questions = await reader.audit(), await reader.interrupts()
        messages = [one async for one in numbered(reader, first)]
        following = messages[-1][0] + 1 if messages else min(first, await message_count(reader))  # less after a reset
        events = [*self._audited(audit), *_spoken(messages), *self._asked(questions)]
        if not ended and (self._seen is None or any(self._seen[name] != seen[name] for name in _STATUS[:3])):
            events.append(SessionEvent("status", {name: status[name] for name in _STATUS}))
        self._position, self._seen, self._messages = position, seen, following
        self._questions = {_face(question) for question in questions}
        self._last_line = audit[-1] if audit else None
        return events, ended

    def _audited(self, audit: list[AuditEntry]) -> list[SessionEvent]:
        """What the audit trail's new lines say of questions; nothing the first time."""
        if self._seen is None:
            return []
        begin = max((index + 1 for index, line in enumerate(audit) if line == self._last_line), default=0)
        return [_told(line, fate) for line in audit[begin:] if (fate := fate_of(line)) is not None]

    def _asked(self, questions: list[Question]) -> list[SessionEvent]:
        fresh = [question for question in questions if _face(question) not in self._questions]
        return [SessionEvent("question", question.model_dump(mode="json")) for question in fresh]


class _Calls:
    """Which calls were told to wait for a worker of their own queue."""

    def __init__(self) -> None:
        self._told: list[WaitingCall] = []

    async def waiting(self, reader: SessionReader) -> list[SessionEvent]:
        """Those that wait and were not told yet."""
        found = await reader.waiting_calls()
        fresh = [call for call in found if call not in self._told]
        self._told = found
        return [SessionEvent("call_waits", call.as_json()) for call in fresh]


def _face(question: Question) -> tuple[str, str]:
    return question.id, question.digest


def _spoken(messages: list[tuple[int, Message]]) -> list[SessionEvent]:
    return [
        SessionEvent("message", {"index": number, "role": message["role"], "content": message["content"]})
        for number, message in messages
    ]


def _told(line: AuditEntry, fate: Fate) -> SessionEvent:
    answer: Any = line.detail.get("answer") or {}
    told: JsonObject = {"id": line.detail.get("question"), "name": line.detail.get("name"), "at": line.at}
    if line.event == "answered":
        told |= {name: answer.get(name) for name in ("response", "responder", "comment", "channel")}
    return SessionEvent(fate.kind, told)


async def _ended_unasked(temporal: Client, reader: SessionReader) -> SessionEvent | None:
    """The end of a session that has no worker any more to ask; None if it goes on, or nobody can say."""
    try:
        return await _end(temporal, reader) if (await reader.summary()).ended else None
    except ConnectionFailedError:
        return None


async def _end(temporal: Client, reader: SessionReader) -> SessionEvent:
    """How it ended: from its workflow's result, which needs no worker."""
    told: JsonObject = {"status": (await reader.summary()).status, "stop_reason": None, "error": None}
    try:
        result = await result_of(temporal, reader.id, _RESULT_PATIENCE)
        told["stop_reason"] = result.stop_reason
        told["error"] = result.error.model_dump() if result.error else None
    except AgentRunError as error:
        told["error"] = {"type": error.error_type, "message": error.detail}
    except SessionEndedError:
        pass  # cancelled or terminated: its status says it
    return SessionEvent("ended", told)
