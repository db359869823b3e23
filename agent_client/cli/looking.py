"""The command that looks at questions. Without a worker it shows what the memo holds."""

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.cards import question_card, short_card
from countersign.agent_client.cli.options import Address, Agent, AsJson, Namespace, Profile, SessionOrAll
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.tables import (
    QUESTION_TITLES,
    print_stacked,
    print_table,
    question_rows,
    say_what_is_unreadable,
)
from countersign.agent_client.cli.terminal import columns, print_json
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.ending import Termination
    from countersign.agent_client.listing import SessionSummary
    from countersign.agent_client.waiting_calls import PendingCall, WaitingCall
    from countersign.agent_core.wire import Question

_TABLE_CHARS = 110
"""In a narrower terminal a table of questions would break its words."""


@dataclass
class Short:
    """What the server knows of a session that no worker answers for.

    Attributes:
        summary: Of the session.
        reason: Why there is no more.
        calls: Those that run or wait, and those of them that wait on a queue of their own.
        termination: How it was terminated, if it was.
    """

    summary: "SessionSummary"
    reason: str
    calls: "tuple[list[PendingCall], list[WaitingCall]]" = field(default_factory=lambda: ([], []))
    termination: "Termination | None" = None


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
        return [session async for session in client.waiting(agent)]

    sessions = run(connection, as_json, work, "reading the list …")
    if as_json:
        print_json([_plain_session(session) for session in sessions])
    elif sessions:
        now = datetime.now(UTC)
        rows = [row for session in sessions for row in question_rows(session, now)]
        if (width := columns()) is not None and width < _TABLE_CHARS:
            print_stacked(QUESTION_TITLES, rows)
        else:
            print_table(QUESTION_TITLES, rows)
        say_what_is_unreadable(sessions)
        print(f"\nto see one in full and answer it: {command('interrupts', 'SESSION')}")
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
    async def work(client: "AgentClient") -> "list[Question] | Short":
        from countersign.agent_client.errors import NoWorkerError

        handle = client.session(session)
        try:
            return await handle.interrupts()
        except NoWorkerError as error:
            return Short(await handle.summary(), str(error))

    found = run(connection, as_json, work)
    if isinstance(found, Short):
        warn_of_short(found, as_json)
        if as_json:
            print_json([{**card, "short": True} for card in found.summary.questions])
        else:
            print_short_cards(found.summary)
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
    at_once = [
        command(verdict, session, "--all")
        for verdict in ("approve", "deny")
        if all(verdict in question.answers for question in questions)
    ]
    if len(questions) > 1 and at_once:
        print(f"\nall at once: {'  or  '.join(at_once)}")


def warn_of_short(short: Short, as_json: bool) -> None:
    if not as_json:
        print(visible(short.reason), file=sys.stderr)
        print("what follows is the short form, from the session's memo", file=sys.stderr)


def print_short_cards(summary: "SessionSummary") -> None:
    now = datetime.now(UTC)
    cards = "\n\n".join(short_card(card, now, columns()) for card in summary.questions)
    print(cards or f"session {visible(summary.session_id)} has no open question in its memo")
