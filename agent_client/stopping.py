"""Stopping a session: sent, waited for, and told what became of its questions and tools."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from countersign.agent_client.errors import NoWorkerError, SessionEndedError
from countersign.agent_client.listing import ENDED_STATUSES, SessionSummary
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.settling import settled
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import AuditEntry

Send: TypeAlias = Callable[[], Awaitable[None]]
"""Sends one thing to the session that is read."""


@dataclass(frozen=True)
class StopReport:
    """What came of a stop.

    Attributes:
        outcome: "stopped"; "idle" if no turn ran; "ended" if the session had ended before.
        status: What the session is now: "idle", "closed", …
        ended: How its workflow ended ("completed", "terminated", …); None if it takes further prompts.
        stop_reason: Of the turn; "cancelled" if the stop ended it.
        withdrawn: The questions that are not asked any more: `{"id", "name"}`.
        ran_on: Tools that were running and finished first, by name.
    """

    outcome: Literal["stopped", "idle", "ended"]
    status: str
    ended: str | None
    stop_reason: str | None
    withdrawn: list[JsonObject] = field(default_factory=list)
    ran_on: list[str] = field(default_factory=list)


def _had_ended(summary: SessionSummary) -> StopReport:
    """The report for a session with nothing to stop, because it had ended before."""
    return StopReport("ended", summary.status, ENDED_STATUSES[summary.status].name.lower(), None)


async def stopped(reader: SessionReader, stop: Send, close: Send | None) -> StopReport:
    """See `SessionHandle.stop_and_wait`.

    Args:
        reader: The session.
        stop: Sends the stop.
        close: Ends the session; None to leave an open one open.
    """
    before = await reader.summary()
    if before.ended:
        return _had_ended(before)
    try:
        busy = (await reader.status())["status"] in ("running", "waiting")
        if busy:
            await stop()
    except NoWorkerError as error:
        await stop()
        raise _later(error) from error
    except SessionEndedError:
        busy = True  # it came to its end by itself meanwhile
    try:
        if close is not None:
            await close()
        status, _ = await settled(reader, () if close else ("idle",), patient=False)
    except NoWorkerError as error:
        raise _later(error) from error
    if not busy:
        return StopReport("idle", status["status"], status["ended"], status["stop_reason"])
    withdrawn, ran_on = _since_stop(await reader.audit())
    return StopReport("stopped", status["status"], status["ended"], status["stop_reason"], withdrawn, ran_on)


async def terminated(reader: SessionReader, terminate: Send) -> StopReport:
    """End a session at once, unless it has ended; what it asked is told from its memo.

    Args:
        reader: The session.
        terminate: Ends it.
    """
    before = await reader.summary()
    if before.ended:
        return _had_ended(before)
    await terminate()
    withdrawn = [{"id": card.get("id"), "name": card.get("name")} for card in before.questions]
    return StopReport("stopped", "terminated", "terminated", None, withdrawn)


def _later(error: NoWorkerError) -> NoWorkerError:
    return NoWorkerError(f"{error}. The stop is sent and takes effect then")


def _since_stop(audit: list[AuditEntry]) -> tuple[list[JsonObject], list[str]]:
    """Questions that were withdrawn, and tools that ended, since the last stop."""
    at = max((entry.at for entry in audit if entry.event == "stop"), default=None)
    since = [entry for entry in audit if at is not None and entry.at >= at]
    withdrawn = {
        str(entry.detail.get("question")): {"id": entry.detail.get("question"), "name": entry.detail.get("name")}
        for entry in since
        if entry.event == "question_withdrawn"
    }
    ran_on = [
        str(entry.detail.get("tool"))
        for entry in since
        if entry.event == "tool_ended"
        and entry.detail.get("outcome") != "never_started"
        and not entry.detail.get("not_run")
    ]
    return list(withdrawn.values()), ran_on
