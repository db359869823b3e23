"""The events of a followed session as a person reads them in a shell."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.audit import answer_words
from countersign.agent_client.cli.cards import question_card
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.terminal import rows, styled
from countersign.agent_client.moments import moment
from countersign.agent_core.moments import moment_of
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.events import SessionEvent


def event_text(
    session: str, event: "SessionEvent", transcript: Transcript, now: datetime, width: int | None = None
) -> str:
    """What happened, over as many lines as it needs.

    Args:
        session: Where it happened.
        event: What.
        transcript: Of the messages before.
        now: The present moment.
        width: Columns of the terminal; None for lines of any length.
    """
    detail = event.detail
    if event.kind == "message":
        return transcript.text(detail["role"], detail["content"], width)
    if event.kind == "question":
        from countersign.agent_core.wire import Question

        return "\n" + question_card(session, Question.model_validate(detail), now, width=width) + "\n"
    return rows(f"* {_line(event, now)}", width if event.kind != "away" else None)  # a command in it can be copied


def _line(event: "SessionEvent", now: datetime) -> str:
    detail = event.detail
    named = visible(f"{detail.get('name')} ({detail.get('id')})")
    if event.kind == "answered":
        return f"{visible(answer_words(detail))} to {named}"
    if event.kind == "withdrawn":
        return f"not asked any more: {named}"
    if event.kind == "expired":
        return f"nobody answered in time: {named}"
    if event.kind == "status":
        return styled(visible(str(detail["status"])), detail["status"])
    if event.kind == "call_waits":
        return call_waits(detail, now)
    if event.kind == "away":
        return f"{visible(str(detail['message']))}; waiting"
    if event.kind == "back":
        return "it answers again"
    return _end_text(event)


def call_waits(call: dict[str, Any], now: datetime) -> str:
    """That a call waits for a worker of its tool's own queue, and until when.

    Args:
        call: A `WaitingCall` as plain JSON.
        now: The present moment.
    """
    until = f", until {moment(call['until'], now)}" if call.get("until") else ""
    return visible(f"{call.get('tool')} waits on queue {call.get('task_queue')!r} for a worker{until}")


def call_runs(call: dict[str, Any], now: datetime) -> str:
    """That a call runs or waits, since when or until when, and why again: "hold runs since … (3 s ago), attempt 2".

    Args:
        call: A `PendingCall` as plain JSON.
        now: The present moment.
    """
    what = call.get("tool") or f"a {call.get('kind')} call"
    since = moment_of(call.get("since"))
    does = "runs since" if call.get("state") == "running" else "has no worker yet since"
    if call.get("state") != "running" and since is not None and since > now:
        does = "waits for its next attempt at"
    again = f", attempt {call['attempt']}" if call.get("attempt", 1) > 1 else ""
    why = f"; the one before failed: {call['failure']}" if call.get("failure") else ""
    return visible(f"{what} {does} {moment(call.get('since'), now)}{again}{why}")


def _end_text(event: "SessionEvent") -> str:
    status, error, stop_reason = (event.detail.get(name) for name in ("status", "error", "stop_reason"))
    text = f"ended: {styled(visible(str(status)), str(status))}"
    if error:
        return f"{text}: {visible(str(error['type']))}: {visible(str(error['message']))}"
    return f"{text} ({visible(str(stop_reason))})" if stop_reason else text
