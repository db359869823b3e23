"""The command that shows a session: status, conversation, audit trail, questions."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from countersign.agent_client.cli.audit import audit_line
from countersign.agent_client.cli.event_text import call_runs, call_waits
from countersign.agent_client.cli.looking import Short, print_questions, print_short_cards, warn_of_short
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, Session
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.terminal import columns, print_json, rows, styled
from countersign.agent_client.moments import moment
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.ending import Termination
    from countersign.agent_client.session_status import SessionStatus
    from countersign.agent_client.waiting_calls import PendingCall, WaitingCall
    from countersign.agent_core.messages import Message
    from countersign.agent_core.wire import AuditEntry, Question

Calls: TypeAlias = "tuple[list[PendingCall], list[WaitingCall]]"
"""Calls that run or wait, and those of them that wait on a queue of their own."""

_AUDIT_LINES = 20
_HEAD_WIDTH = 14


@dataclass
class _Full:
    """What a session itself says."""

    status: "SessionStatus"
    questions: "list[Question]" = field(default_factory=list)
    transcript: "list[Message]" = field(default_factory=list)
    audit: "list[AuditEntry]" = field(default_factory=list)
    calls: "Calls" = field(default_factory=lambda: ([], []))
    termination: "Termination | None" = None


def show(
    session: Session,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Show a session: status, calls that run, conversation, audit trail, questions.

    A session that has ended can be shown too. Without a worker, status and questions come in a short form.
    Long texts and results are cut, and only the last 20 lines of the audit trail are shown; --json has all.
    """
    found = run(Connection(address, namespace, profile), as_json, lambda client: _found(client, session))
    if isinstance(found, Short):
        warn_of_short(found, as_json)
        _print_short(found, as_json)
    elif as_json:
        print_json(
            {
                "status": found.status,
                "interrupts": [question.model_dump(mode="json") for question in found.questions],
                "transcript": found.transcript,
                "audit": [entry.model_dump(mode="json") for entry in found.audit],
                **_calls_as_json(found.calls),
                "terminated": found.termination.as_json() if found.termination else None,
            }
        )
    else:
        _print_full(session, found)


async def _found(client: "AgentClient", session: str) -> "_Full | Short":
    """What there is to show."""
    from countersign.agent_client.ending import termination_of
    from countersign.agent_client.errors import NoWorkerError

    handle = client.session(session)
    try:
        transcript = [message async for message in handle.transcript()]
        status, questions, audit = await handle.status(), await handle.interrupts(), await handle.audit()
        ended = await termination_of(client.temporal, session) if status["ended"] == "terminated" else None
        return _Full(status, questions, transcript, audit, await handle.calls(), ended)
    except NoWorkerError as error:
        summary = await handle.summary()
        ended = await termination_of(client.temporal, session) if summary.status == "terminated" else None
        return Short(summary, str(error), await handle.calls(), ended)


def _print_short(found: Short, as_json: bool) -> None:
    summary = found.summary
    if as_json:
        print_json(
            {
                "status": summary.as_json(),
                "interrupts": summary.questions,
                "transcript": None,
                "audit": None,
                **_calls_as_json(found.calls),
                "terminated": found.termination.as_json() if found.termination else None,
                "short": True,
            }
        )
        return
    now = datetime.now(UTC)
    print(f"session {styled(visible(summary.session_id), 'bold')}")
    _print_head("agent", visible(summary.agent or "?"))
    _print_head("status", styled(summary.status, summary.status))
    _print_head("started", moment(summary.started_at.isoformat(), now))
    if summary.ended_at is not None:
        _print_head("ended", moment(summary.ended_at.isoformat(), now))
        _print_termination(found.termination, now)
    else:
        _print_calls(found.calls, now)
        print()
        print_short_cards(summary)


def _print_full(session: str, found: _Full) -> None:
    print(f"session {styled(visible(session), 'bold')}")
    for name, text in _head(found.status):
        _print_head(name, text)
    _print_termination(found.termination, datetime.now(UTC))
    _print_calls(found.calls, datetime.now(UTC))
    print("\nconversation")
    transcript = Transcript()
    for message in found.transcript:
        print(transcript.text(message["role"], message["content"], columns()))
    if audit := found.audit:
        print("\naudit (UTC)" + (f", last {_AUDIT_LINES} of {len(audit)}" if len(audit) > _AUDIT_LINES else ""))
        for entry in audit[-_AUDIT_LINES:]:
            print(audit_line(entry, columns()))
    print()
    print_questions(session, found.questions)


def _print_termination(termination: "Termination | None", now: datetime) -> None:
    if termination is not None:
        told = termination.as_json()
        _print_head("terminated", f"{moment(told['at'], now)} by {visible(told['by'])}")
        _print_head("reason", visible(told["reason"] or "none given"))


def _calls_as_json(calls: Calls) -> dict[str, Any]:
    every, elsewhere = calls
    return {"calls": [call.as_json() for call in every], "waiting_calls": [call.as_json() for call in elsewhere]}


def _print_calls(calls: Calls, now: datetime) -> None:
    told_below = {(waiting.tool, waiting.since) for waiting in calls[1]}
    for call in calls[0]:
        if (call.name, call.since) not in told_below:
            print(rows(f"  {call_runs(call.as_json(), now)}", columns()))
    for waiting in calls[1]:
        print(rows(f"  {call_waits(waiting.as_json(), now)}", columns()))


def _print_head(name: str, text: str) -> None:
    print(rows(f"  {visible(name):<{_HEAD_WIDTH}} {text}", columns()))


def _head(status: "SessionStatus") -> list[tuple[str, str]]:
    """The status query's fields in plain words; what says nothing is left out."""
    now = datetime.now(UTC)
    lines = []
    for name, value in status.items():
        if name == "session_id" or value in (None, [], {}, "", 0):
            continue
        if name == "error" and isinstance(value, dict):
            text = visible(f"{value.get('type')}: {value.get('message')}")
        elif name in ("since", "next_deadline"):
            text = moment(str(value), now)
        else:
            text = styled(visible(str(value)), str(value)) if name == "status" else visible(str(value))
        lines.append((name.replace("_", " "), text))
    return lines
