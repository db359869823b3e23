"""The commands that look: interrupts, show. Without a worker they show what the memo holds."""

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.audit import audit_line
from countersign.agent_client.cli.cards import question_card, short_card
from countersign.agent_client.cli.event_text import call_waits
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.options import Address, Agent, AsJson, Namespace, Profile, Session, SessionOrAll
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.tables import (
    QUESTION_TITLES,
    print_stacked,
    print_table,
    question_rows,
    say_what_is_unreadable,
)
from countersign.agent_client.cli.terminal import columns, print_json, styled
from countersign.agent_client.moments import moment
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.listing import SessionSummary
    from countersign.agent_client.waiting_calls import WaitingCall
    from countersign.agent_core.messages import Message
    from countersign.agent_core.wire import AuditEntry, Question

_AUDIT_LINES = 20
_TABLE_CHARS = 110
"""In a narrower terminal a table of questions would break its words."""
_HEAD_WIDTH = 14


@dataclass
class _Short:
    """What the server knows of a session that no worker answers for.

    Attributes:
        summary: Of the session.
        reason: Why there is no more.
    """

    summary: "SessionSummary"
    reason: str


@dataclass
class _Full:
    """What a session itself says."""

    status: dict[str, Any]
    questions: "list[Question]" = field(default_factory=list)
    transcript: "list[Message]" = field(default_factory=list)
    audit: "list[AuditEntry]" = field(default_factory=list)
    waiting_calls: "list[WaitingCall]" = field(default_factory=list)


def interrupts(
    session: SessionOrAll = None,
    *,
    agent: Agent = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List what waits; with SESSION, its questions in full.

    The list needs no worker. The questions in full need one; without, they are shown in the short
    form that fits a memo.
    """
    connection = Connection(address, namespace, profile)
    if session is None:
        _all_waiting(connection, agent, as_json)
    else:
        _questions_of(connection, session, as_json)


def _all_waiting(connection: Connection, agent: str | None, as_json: bool) -> None:
    async def work(client: "AgentClient") -> "list[SessionSummary]":
        return [found async for found in client.waiting(agent)]

    found = run(connection, as_json, work, "reading the list …")
    if as_json:
        print_json([_plain_session(session) for session in found])
    elif found:
        now = datetime.now(UTC)
        rows = [row for session in found for row in question_rows(session, now)]
        if (width := columns()) is not None and width < _TABLE_CHARS:
            print_stacked(QUESTION_TITLES, rows)
        else:
            print_table(QUESTION_TITLES, rows)
        say_what_is_unreadable(found)
        print(f"\nto see one in full and answer it: {command('interrupts')} SESSION")
    else:
        print("nothing waits for an answer")


def _plain_session(session: "SessionSummary") -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "agent": session.agent,
        "started_at": session.started_at.isoformat(),
        "questions": session.questions,
        "open_questions": session.open_questions,
        "unreadable": session.unreadable or None,
    }


def _questions_of(connection: Connection, session: str, as_json: bool) -> None:
    async def work(client: "AgentClient") -> "list[Question] | _Short":
        from countersign.agent_client.errors import NoWorkerError

        handle = client.session(session)
        try:
            return await handle.interrupts()
        except NoWorkerError as error:
            return _Short(await handle.summary(), str(error))

    found = run(connection, as_json, work)
    if isinstance(found, _Short):
        _warn(found, as_json)
        if as_json:
            print_json([{**card, "short": True} for card in found.summary.questions])
        else:
            _print_short_cards(found.summary)
    elif as_json:
        print_json([question.model_dump(mode="json") for question in found])
    else:
        print_questions(session, found)


def print_questions(session: str, questions: "list[Question]") -> None:
    """The cards of a session's open questions, or that there is none."""
    if not questions:
        print(f"session {visible(session)} has no open question")
        return
    now = datetime.now(UTC)
    print("\n\n".join(question_card(session, question, now, width=columns()) for question in questions))
    if len(questions) > 1:
        print(f"\nall at once: {command('approve', session, '--all')}  or  {command('deny', session, '--all')}")


def _warn(short: _Short, as_json: bool) -> None:
    if not as_json:
        print(visible(short.reason), file=sys.stderr)
        print("what follows is the short form, from the session's memo", file=sys.stderr)


def _print_short_cards(summary: "SessionSummary") -> None:
    now = datetime.now(UTC)
    cards = "\n\n".join(short_card(card, now, columns()) for card in summary.questions)
    print(cards or f"session {visible(summary.session_id)} has no open question in its memo")


def show(
    session: Session,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Show a session: status, conversation, audit trail, questions.

    A session that has ended can be shown too. Without a worker, status and questions come in a short form.
    """

    async def work(client: "AgentClient") -> "_Full | _Short":
        from countersign.agent_client.errors import NoWorkerError

        handle = client.session(session)
        try:
            transcript = [message async for message in handle.transcript()]
            status, questions, audit = await handle.status(), await handle.interrupts(), await handle.audit()
            return _Full(status, questions, transcript, audit, await handle.waiting_calls())
        except NoWorkerError as error:
            return _Short(await handle.summary(), str(error))

    found = run(Connection(address, namespace, profile), as_json, work)
    if isinstance(found, _Short):
        _warn(found, as_json)
        _print_short(found.summary, as_json)
    elif as_json:
        print_json(
            {
                "status": found.status,
                "interrupts": [question.model_dump(mode="json") for question in found.questions],
                "transcript": found.transcript,
                "audit": [entry.model_dump(mode="json") for entry in found.audit],
                "waiting_calls": [call.as_json() for call in found.waiting_calls],
            }
        )
    else:
        _print_full(session, found)


def _print_short(summary: "SessionSummary", as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "status": summary.as_json(),
                "interrupts": summary.questions,
                "transcript": None,
                "audit": None,
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
    else:
        print()
        _print_short_cards(summary)


def _print_full(session: str, found: _Full) -> None:
    print(f"session {styled(visible(session), 'bold')}")
    for name, text in _head(found.status):
        _print_head(name, text)
    for call in found.waiting_calls:
        print(f"  {call_waits(call.as_json(), datetime.now(UTC))}")
    print("\nconversation")
    transcript = Transcript()
    for message in found.transcript:
        print(transcript.text(message["role"], message["content"], columns()))
    if audit := found.audit:
        print("\naudit (UTC)" + (f", last {_AUDIT_LINES} of {len(audit)}" if len(audit) > _AUDIT_LINES else ""))
        for entry in audit[-_AUDIT_LINES:]:
            print(audit_line(entry))
    print()
    print_questions(session, found.questions)


def _print_head(name: str, text: str) -> None:
    print(f"  {visible(name):<{_HEAD_WIDTH}} {text}")


def _head(status: dict[str, Any]) -> list[tuple[str, str]]:
    """The status query's fields in plain words; what says nothing is left out."""
    now = datetime.now(UTC)
    found = []
    for name, value in status.items():
        if name == "session_id" or value in (None, [], {}, "", 0):
            continue
        if name == "error" and isinstance(value, dict):
            text = visible(f"{value.get('type')}: {value.get('message')}")
        elif name in ("since", "next_deadline"):
            text = moment(str(value), now)
        else:
            text = styled(visible(str(value)), str(value)) if name == "status" else visible(str(value))
        found.append((name.replace("_", " "), text))
    return found
