"""Stopping a session: sent, waited for, and told what became of its questions and tools."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_client.errors import NoWorkerError, SessionEndedError
from countersign.agent_client.listing import ENDED_STATUSES, SessionSummary
from countersign.agent_client.settling import settled
from countersign.agent_client.waiting_calls import PendingCall, WaitingCall
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.unknown_outcomes import known_of_call, tools_of
from countersign.agent_core.wire import AuditEntry

if TYPE_CHECKING:
    from countersign.agent_client.session import SessionHandle


@dataclass(frozen=True)
class StopReport:
    """What came of a stop.

    Attributes:
        outcome: "stopped"; "idle" if no turn ran; "ended" if the session had ended before.
        status: What the session is now: "idle", "closed", …
        ended: How its workflow ended ("completed", "terminated", …); None if it takes further prompts.
        stop_reason: Of the turn; "cancelled" if the stop ended it.
        withdrawn: The questions that are not asked any more: `{"id", "name", "tools", "call"}`; `call` says of an
            `unknown-outcome` whether its call "may have run" or "has not run", and is None for others.
        ran_on: Tools that were running and finished first, by name.
        never_started: Tools whose call waited for a worker of a queue of their own, and got none.
        unknown: Tools of which nobody knows whether they ran.
        abandoned: Tools that ran when the session was terminated: they may go on, and nobody records it.
        not_begun: Tools whose call no worker had begun just before it was terminated.
    """

    outcome: Literal["stopped", "idle", "ended"]
    status: str
    ended: str | None
    stop_reason: str | None
    withdrawn: list[JsonObject] = field(default_factory=list)
    ran_on: list[str] = field(default_factory=list)
    never_started: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    not_begun: list[str] = field(default_factory=list)


def _had_ended(summary: SessionSummary) -> StopReport:
    """The report for a session with nothing to stop, because it had ended before."""
    return StopReport("ended", summary.status, ENDED_STATUSES[summary.status].name.lower(), None)


async def stop_session(
    session: "SessionHandle",
    *,
    close: bool,
    tell: Callable[[list[WaitingCall]], None] | None = None,
    tell_running: Callable[[list[PendingCall]], None] | None = None,
) -> StopReport:
    """Stop the running turn of a session gracefully, and wait until it has stopped.

    Args:
        session: The session.
        close: True to end an open session too.
        tell: Called with the tool calls that wait for a worker of their own queue, if any do: the stop takes effect
            when one has run them, or when they have waited long enough.
        tell_running: Called with the other calls that hold up the stop, if any do: it takes effect when they have
            ended. A model's call does not: it is cancelled.

    Returns:
        What happened; a session that has ended or stands idle is left as it is.

    Raises:
        NoWorkerError: No worker runs; the stop is sent and takes effect when one does.
    """
    before = await session.summary()
    if before.ended:
        return _had_ended(before)
    asked: list[JsonObject] = before.questions
    try:
        busy = (word := (await session.status())["status"]) in ("running", "waiting")
        if word == "waiting":  # a memo has not room for all of them
            asked = [question.model_dump(mode="json") for question in await session.interrupts()]
        if busy:
            await session.stop()
            await _tell(session, tell, tell_running)
    except NoWorkerError as error:
        await session.stop()
        raise _later(error) from error
    except SessionEndedError:
        busy = True  # it came to its end by itself meanwhile
    try:
        if close:
            await session.close()
        status, _ = await settled(session, () if close else ("idle",), patient=False)
    except NoWorkerError as error:
        raise _later(error) from error
    if not busy:
        return StopReport("idle", status["status"], status["ended"], status["stop_reason"])
    found = _since_stop(await session.audit(), asked)
    return StopReport("stopped", status["status"], status["ended"], status["stop_reason"], **found)


async def _tell(
    session: "SessionHandle",
    tell: Callable[[list[WaitingCall]], None] | None,
    tell_running: Callable[[list[PendingCall]], None] | None,
) -> None:
    if tell is None and tell_running is None:
        return
    every, elsewhere = await session.calls()
    told = {(call.tool, call.since) for call in elsewhere}
    others = [call for call in every if call.kind != "model" and (call.name, call.since) not in told]
    if tell_running is not None and others:
        tell_running(others)
    if tell is not None and elsewhere:
        tell(elsewhere)


async def terminate_session(session: "SessionHandle", reason: str) -> StopReport:
    """End a session at once, unless it has ended; what it asked and ran is told from what the server knows of it.

    Args:
        session: The session.
        reason: Kept in the history, where it is never encrypted.
    """
    before = await session.summary()
    if before.ended:
        return _had_ended(before)
    tools = [call for call in (await session.calls())[0] if call.kind == "tool"]
    await session.terminate(reason)
    return StopReport(
        "stopped",
        "terminated",
        "terminated",
        None,
        [_withdrawn(card.get("id"), card.get("name"), card) for card in before.questions],
        abandoned=[call.name for call in tools if call.may_have_run],
        not_begun=[call.name for call in tools if not call.may_have_run],
    )


def _withdrawn(question: Any, name: Any, asked: JsonObject) -> JsonObject:
    """A question that is not asked any more, with what it was about, as far as that is known."""
    return {"id": question, "name": name, "tools": tools_of(asked), "call": known_of_call(asked)}


def _later(error: NoWorkerError) -> NoWorkerError:
    return NoWorkerError(f"{error}. The stop is sent and takes effect then")


def _since_stop(audit: list[AuditEntry], asked: Sequence[JsonObject] = ()) -> dict[str, list[Any]]:
    """Questions that were withdrawn, and what became of tools, since the last stop; by field of the report.

    Args:
        audit: The audit trail.
        asked: The questions that were open, as plain JSON, or their cards.
    """
    cards = {str(question.get("id")): question for question in asked}
    at = max((entry.at for entry in audit if entry.event == "stop"), default=None)
    since = [entry for entry in audit if at is not None and entry.at >= at]
    withdrawn = {
        str(name): _withdrawn(name, entry.detail.get("name"), cards.get(str(name), {}))
        for entry in since
        if entry.event == "question_withdrawn" and (name := entry.detail.get("question"))
    }
    found: dict[str, list[Any]] = {"withdrawn": list(withdrawn.values())}
    for entry in since:
        if entry.event == "tool_ended" and (fate := _fate(entry.detail)) is not None:
            found.setdefault(fate, []).append(str(entry.detail.get("tool")))
    return found


def _fate(detail: JsonObject) -> str | None:
    """The report's field for a call that has ended; None for one that asked a person, whose question is told."""
    if detail.get("outcome") == "unknown":
        return "never_started" if detail.get("not_run") else "unknown"
    return {"result": "ran_on", "never_started": "never_started"}.get(str(detail.get("outcome")))
