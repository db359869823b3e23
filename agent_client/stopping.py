"""Stopping a session: sent, waited for, and told what became of its questions and tools."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from countersign.agent_client.errors import NoWorkerError, SessionEndedError
from countersign.agent_client.listing import ENDED_STATUSES, SessionSummary
from countersign.agent_client.sending import backoff_s, paused
from countersign.agent_core.json_values import JsonObject
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
        withdrawn: The questions that are not asked any more: `{"id", "name"}`.
        ran_on: Tools that were running and finished first, by name.
    """

    outcome: Literal["stopped", "idle", "ended"]
    status: str
    ended: str | None
    stop_reason: str | None
    withdrawn: list[JsonObject] = field(default_factory=list)
    ran_on: list[str] = field(default_factory=list)


def had_ended(summary: SessionSummary) -> StopReport:
    """The report for a session with nothing to stop, because it had ended before."""
    return StopReport("ended", summary.status, ENDED_STATUSES[summary.status].name.lower(), None)


async def stopped(session: "SessionHandle", close: bool) -> StopReport:
    """See `SessionHandle.stop_and_wait`."""
    before = await session.summary()
    if before.ended:
        return had_ended(before)
    try:
        busy = (await session.status())["status"] in ("running", "waiting")
        if busy:
            await session.stop()
    except NoWorkerError as error:
        await session.stop()
        raise _later(error) from error
    except SessionEndedError:
        busy = True  # it came to its end by itself meanwhile
    try:
        if close:
            await session.close()
        status = await _at_rest(session, close)
    except NoWorkerError as error:
        raise _later(error) from error
    if not busy:
        return StopReport("idle", status["status"], status["ended"], status["stop_reason"])
    withdrawn, ran_on = _since_stop(await session.audit())
    return StopReport("stopped", status["status"], status["ended"], status["stop_reason"], withdrawn, ran_on)


def _later(error: NoWorkerError) -> NoWorkerError:
    return NoWorkerError(f"{error}. The stop is sent and takes effect then")


async def _at_rest(session: "SessionHandle", close: bool) -> JsonObject:
    """The status once nothing runs any more, and the session has ended if it is to."""
    async for _ in paused(backoff_s(0.05, 1.0)):
        status = await session.status()
        over = status["ended"] is not None
        if over or (status["status"] not in ("running", "waiting", "closed") and not close):
            return status
    raise AssertionError("the pauses never end")


def _since_stop(audit: list[AuditEntry]) -> tuple[list[JsonObject], list[str]]:
    """Questions that were withdrawn, and tools that ended, since the last stop."""
    at = max((entry.at for entry in audit if entry.event == "stop"), default=None)
    since = [entry for entry in audit if at is not None and entry.at >= at]
    withdrawn = {
        str(entry.detail.get("question")): {"id": entry.detail.get("question"), "name": entry.detail.get("name")}
        for entry in since
        if entry.event == "question_withdrawn"
    }
    ran_on = [str(entry.detail.get("tool")) for entry in since if entry.event == "tool_ended"]
    return list(withdrawn.values()), ran_on
