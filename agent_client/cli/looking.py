"""The commands that look: interrupts, show."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.cards import moment, print_waiting, question_card
from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, Session
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.terminal import command, print_json, shortened, visible, visible_json, visible_lines

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.waiting import WaitingSession
    from countersign.agent_core.messages import ContentBlock, Message
    from countersign.agent_core.wire import AuditEntry, Question

_AUDIT_LINES = 10
_BLOCK_CHARS = 4_000


def interrupts(
    session: Annotated[
        str | None, typer.Argument(help="Only this session, in full.", metavar="SESSION", show_default=False)
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option(help="Only sessions of this agent.", show_default=False)] = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List what waits; with SESSION, its questions in full."""
    connection = Connection(address, namespace, profile)
    if session is None:
        _all_waiting(connection, agent, as_json)
    else:
        _questions_of(connection, session, as_json)


def _all_waiting(connection: Connection, agent: str | None, as_json: bool) -> None:
    async def work(client: "AgentClient") -> "list[WaitingSession]":
        return [found async for found in client.waiting(agent)]

    found = run(connection, as_json, work)
    if as_json:
        print_json([_plain_session(session) for session in found])
    elif found:
        print_waiting(found, datetime.now(UTC))
        print(f"\nto see one in full and answer it: {command('interrupts')} SESSION")
    else:
        print("nothing waits for an answer")


def _plain_session(session: "WaitingSession") -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "agent": session.agent,
        "started_at": session.started_at.isoformat(),
        "questions": session.questions,
    }


def _questions_of(connection: Connection, session: str, as_json: bool) -> None:
    async def work(client: "AgentClient") -> "list[Question]":
        return await client.session(session).interrupts()

    found = run(connection, as_json, work)
    if as_json:
        print_json([question.model_dump(mode="json") for question in found])
    else:
        print_questions(session, found)


def print_questions(session: str, questions: "list[Question]") -> None:
    """The cards of a session's open questions, or that there is none."""
    if not questions:
        print(f"session {visible(session)} has no open question")
        return
    now = datetime.now(UTC)
    print("\n\n".join(question_card(session, question, now) for question in questions))
    if len(questions) > 1:
        print(f"\nall at once: {command('approve', session, '--all')}  or  {command('deny', session, '--all')}")


def show(
    session: Session,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Show a session: status, conversation, audit, questions."""

    async def work(client: "AgentClient") -> "tuple[Any, list[Question], list[Message], list[AuditEntry]]":
        handle = client.session(session)
        transcript = [message async for message in handle.transcript()]
        return await handle.status(), await handle.interrupts(), transcript, await handle.audit()

    status, questions, transcript, audit = run(Connection(address, namespace, profile), as_json, work)
    if as_json:
        print_json(
            {
                "status": status,
                "interrupts": [question.model_dump(mode="json") for question in questions],
                "transcript": transcript,
                "audit": [entry.model_dump(mode="json") for entry in audit],
            }
        )
        return
    print(f"session {visible(session)}")
    for name, value in status.items():
        if name != "session_id" and value not in (None, [], {}, ""):
            print(f"  {visible(name):<14} {visible(str(value))}")
    print("\nconversation")
    for message in transcript:
        print_message(message)
    if audit:
        print("\naudit" + (f" (last {_AUDIT_LINES} of {len(audit)})" if len(audit) > _AUDIT_LINES else ""))
        for entry in audit[-_AUDIT_LINES:]:
            print(_audit_line(entry))
    print()
    print_questions(session, questions)


def print_message(message: "Message") -> None:
    """One message of the conversation."""
    print(f"  {visible(message['role'])}")
    for block in message["content"]:
        print(_block_text(block))


def _block_text(block: "ContentBlock") -> str:
    if isinstance(block.get("text"), str):
        return visible_lines(shortened(block["text"], _BLOCK_CHARS), "    ")
    if "toolUse" in block:
        use = block["toolUse"]
        return f"    calls {visible(str(use.get('name')))}\n{visible_json(use.get('input'), '    ')}"
    if "toolResult" in block:
        result = block["toolResult"]
        texts = [part["text"] if "text" in part else str(part) for part in result.get("content", [])]
        shown = visible_lines(shortened("\n".join(map(str, texts)), _BLOCK_CHARS), "    ")
        return f"    result ({visible(str(result.get('status')))})\n{shown}"
    return f"    {visible(', '.join(block))}"


def _audit_line(entry: "AuditEntry") -> str:
    detail = ", ".join(f"{name}={value}" for name, value in entry.detail.items() if value is not None)
    when = moment(entry.at, datetime.now(UTC)).split(" (")[0]
    cycle = "" if entry.cycle is None else f" cycle {entry.cycle}"
    return visible(f"  {when}{cycle} {entry.event} {shortened(detail, 300)}".rstrip())
