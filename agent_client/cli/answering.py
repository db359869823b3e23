"""The commands that answer: approve, deny, respond."""

import json
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.cards import receipt_text
from countersign.agent_client.cli.choice import Choice
from countersign.agent_client.cli.looking import print_questions
from countersign.agent_client.cli.options import (
    Address,
    AsJson,
    Comment,
    Digest,
    Namespace,
    OneOfTheInterrupts,
    Profile,
    Session,
    Who,
)
from countersign.agent_client.cli.running import FAILED, INTERRUPTED, Connection, UsageError, run
from countersign.agent_client.cli.terminal import columns, print_json, visible_lines

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_core.json_values import JsonObject
    from countersign.agent_core.wire import AnswerReceipt, Question

All = Annotated[bool, typer.Option("--all", help="Every open question of the session, all or none.")]


def approve(
    session: Session,
    interrupt_id: OneOfTheInterrupts = None,
    *,
    every: All = False,
    digest: Digest = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't show it and ask once more at a terminal.")] = False,
    comment: Comment = None,
    who: Who = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Approve a question: the call runs exactly as shown.

    At a terminal, without --digest or --yes, it is shown first; a script signs what is open.
    """
    chosen = Choice(session, interrupt_id, every, digest)
    connection = Connection(address, namespace, profile)
    if digest is None and not (yes or as_json) and sys.stdin.isatty() and sys.stdout.isatty():
        _let_see(chosen, connection)

    def block(question: "Question") -> "JsonObject":
        from countersign.agent_client.answers import verdict_block

        return verdict_block(question, "approve", who, comment)

    _give(chosen, "approved", block, connection=connection, as_json=as_json)


def deny(
    session: Session,
    interrupt_id: OneOfTheInterrupts = None,
    *,
    every: All = False,
    reason: Annotated[
        str | None, typer.Option(help='Why not, in words that the model reads: sent as "n: WORDS".', show_default=False)
    ] = None,
    digest: Digest = None,
    comment: Comment = None,
    who: Who = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Deny a question: the call does not run."""
    chosen = Choice(session, interrupt_id, every, digest)

    def block(question: "Question") -> "JsonObject":
        from countersign.agent_client.answers import denial_block, verdict_block

        if reason is not None:
            return denial_block(question, reason, who, comment)
        return verdict_block(question, "deny", who, comment)

    _give(chosen, "denied", block, connection=Connection(address, namespace, profile), as_json=as_json)


def respond(
    session: Session,
    answer: Annotated[
        list[str],
        typer.Argument(
            help="The answer: text, or JSON with --json-value. The id may be left out if one question is open.",
            metavar="[INTERRUPT_ID] VALUE",
            show_default=False,
        ),
    ],
    *,
    json_value: Annotated[bool, typer.Option("--json-value", help="VALUE is JSON: true, 3, null, {…}.")] = False,
    digest: Digest = None,
    comment: Comment = None,
    who: Who = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Answer a question with any value."""

    async def work(client: "AgentClient") -> "tuple[list[Question], AnswerReceipt]":
        from countersign.agent_client.answers import answer_block

        interrupt_id, text = _id_and_value(answer)
        response = parsed(text) if json_value else text
        past = ("unknown_interrupt", "already_answered", "expired", "withdrawn")
        questions = await _open_or_past(past, Choice(session, interrupt_id, False, digest), client)
        found: list[tuple[str, str | None]] = [(question.id, question.digest) for question in questions]
        found = found or [(interrupt_id or "", digest)]
        blocks = [answer_block(name, response, digest=bound, responder=who, comment=comment) for name, bound in found]
        return questions, await client.session(session).answer(blocks)

    _report(session, "answered", *run(Connection(address, namespace, profile), as_json, work), as_json)


def _id_and_value(given: list[str]) -> tuple[str | None, str]:
    """The question's id, if one is given, and the answer.

    Raises:
        UsageError: If it isn't clear which is which.
    """
    if len(given) > 2:
        raise UsageError(f"{len(given)} words given after SESSION; quote a VALUE that has spaces")
    if len(given) == 2:
        return given[0], given[1]
    from countersign.agent_core.interrupts import INTERRUPT_ID

    if INTERRUPT_ID.fullmatch(given[0]):
        raise UsageError(f"{given[0]} is a question's id, and VALUE is missing; say what to answer")
    return None, given[0]


async def _open_or_past(past: Collection[str], chosen: Choice, client: "AgentClient") -> "list[Question]":
    """The chosen question; none if it is past, by the refusal's code: the session has the last word of that."""
    from countersign.agent_core.errors import AnswerRefused

    try:
        return await chosen.questions(client)
    except AnswerRefused as refused:
        if refused.code not in past:
            raise
        return []


def parsed(value: str) -> Any:
    """The JSON value of a text.

    Raises:
        UsageError: If it is none.
    """
    from countersign.agent_client.answers import parsed_value

    try:
        return parsed_value(value)
    except ValueError as error:
        raise UsageError(f"VALUE is {error}; quote it for the shell, or leave out --json-value to send text") from error


def _let_see(choice: Choice, connection: Connection) -> None:
    """Show the chosen questions and keep to them if the person says that they mean them; else leaves with 1."""
    questions = run(connection, False, partial(_open_or_past, ("already_answered",), choice))
    if not questions:
        return  # there is nothing to see, and never will be; whether it was answered like this, the session says
    print_questions(choice.session, questions)
    if not _meant("\nApprove?" if len(questions) == 1 else f"\nApprove all {len(questions)}?"):
        print("nothing was answered", file=sys.stderr)
        raise SystemExit(FAILED)
    choice.settle(questions)


def _meant(words: str) -> bool:
    """What the person says; Ctrl-D says no, Ctrl-C leaves."""
    try:
        return typer.confirm(words)
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise SystemExit(INTERRUPTED) from None
        return False


def _give(
    choice: Choice, word: str, block: "Callable[[Question], JsonObject]", *, connection: Connection, as_json: bool
) -> None:
    """Answer the chosen questions, all or none."""

    async def work(client: "AgentClient") -> "tuple[list[Question], AnswerReceipt]":
        from countersign.agent_core.errors import AnswerRefused

        try:
            questions = await choice.questions(client)
        except AnswerRefused as refused:
            return [], await choice.recorded(client, refused, block)
        return questions, await client.session(choice.session).answer([block(question) for question in questions])

    _report(choice.session, word, *run(connection, as_json, work), as_json)


def _report(session: str, word: str, questions: "list[Question]", receipt: "AnswerReceipt", as_json: bool) -> None:
    if as_json:
        print_json(receipt.model_dump(mode="json"))
        return
    for question in questions:
        for call in question.calls:
            shown = json.dumps(call.input, ensure_ascii=False)
            print(visible_lines(f"{call.tool} {shown}", width=columns(sys.stderr)), file=sys.stderr)
    print(receipt_text(session, receipt, word))
