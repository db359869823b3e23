"""The commands that answer: approve, deny, respond."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.cards import receipt_text
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
from countersign.agent_client.cli.running import Connection, UsageError, run
from countersign.agent_client.cli.terminal import print_json, visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_core.wire import AnswerReceipt, Question

_SHORTEST_DIGEST = 8

All = Annotated[bool, typer.Option("--all", help="Every open question of the session, all or none.")]


def approve(
    session: Session,
    interrupt_id: OneOfTheInterrupts = None,
    *,
    every: All = False,
    digest: Digest = None,
    comment: Comment = None,
    who: Who = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Approve a question: the call runs exactly as shown."""
    chosen = Choice(session, interrupt_id, every, digest)
    _give_verdict(
        "approve", chosen, who=who, comment=comment, connection=Connection(address, namespace, profile), as_json=as_json
    )


def deny(
    session: Session,
    interrupt_id: OneOfTheInterrupts = None,
    *,
    every: All = False,
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
    _give_verdict(
        "deny", chosen, who=who, comment=comment, connection=Connection(address, namespace, profile), as_json=as_json
    )


def respond(
    session: Session,
    interrupt_id: Annotated[str, typer.Argument(help="The question's id.", metavar="INTERRUPT_ID", show_default=False)],
    value: Annotated[
        str, typer.Argument(help="The answer; text, or JSON with --json-value.", metavar="VALUE", show_default=False)
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

        response = parsed(value) if json_value else value
        questions = await Choice(session, interrupt_id, False, digest).questions(client) if digest else []
        bound = questions[0].digest if questions else None
        block = answer_block(interrupt_id, response, digest=bound, responder=who, comment=comment)
        return questions, await client.session(session).answer(block)

    _report(session, *run(Connection(address, namespace, profile), as_json, work), as_json)


def parsed(value: str) -> Any:
    """The JSON value of a text.

    Raises:
        UsageError: If it is none.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(value, parse_constant=refuse)
    except ValueError as error:
        raise UsageError(
            f"VALUE is not JSON ({error}); quote it for the shell, or leave out --json-value to send text"
        ) from error


class Choice:
    """Which of a session's open questions are meant.

    Args:
        session: The session's id.
        interrupt_id: One question; None for the only one that is open.
        every: True for all of them.
        digest: Beginning of the digest that the question must have.
    """

    def __init__(self, session: str, interrupt_id: str | None, every: bool, digest: str | None) -> None:
        self.session, self._interrupt_id, self._every, self._digest = session, interrupt_id, every, digest

    async def questions(self, client: "AgentClient") -> "list[Question]":
        """The questions.

        Raises:
            UsageError: If it isn't clear which one, with those that are open.
            AnswerRefused: If it is not open any more, or has another digest than the person saw.
        """
        self._check()
        handle = client.session(self.session)
        if self._interrupt_id is not None:
            return [self._unchanged(await handle.question(self._interrupt_id))]
        found = await handle.interrupts()
        if not found:
            raise _refused("not_interrupted", f"session {self.session!r} has no open question")
        if self._every:
            return found
        if len(found) > 1:
            listed = "; ".join(f"{question.id} ({question.name})" for question in found)
            raise UsageError(f"{len(found)} questions are open; name one, or give --all: {listed}")
        return [self._unchanged(found[0])]

    def _check(self) -> None:
        if self._every and (self._interrupt_id is not None or self._digest is not None):
            raise UsageError("--all goes with neither INTERRUPT_ID nor --digest; leave one out")
        if self._digest is not None and len(self._digest) < _SHORTEST_DIGEST:
            raise UsageError(f"--digest needs {_SHORTEST_DIGEST} or more digits")

    def _unchanged(self, question: "Question") -> "Question":
        if self._digest is not None and not question.digest.startswith(self._digest.lower()):
            raise _refused(
                "outdated",
                f"question {question.id} is not the one you saw (its digest is {question.digest[:16]}); "
                f"look again: countersign interrupts {self.session}",
            )
        return question


def _refused(code: str, message: str) -> Exception:
    from countersign.agent_core.errors import AnswerRefused

    return AnswerRefused(code, message)


def _give_verdict(
    verdict: str, choice: Choice, *, who: str | None, comment: str | None, connection: Connection, as_json: bool
) -> None:
    async def work(client: "AgentClient") -> "tuple[list[Question], AnswerReceipt]":
        from countersign.agent_client.answers import verdict_block

        questions = await choice.questions(client)
        blocks = [verdict_block(question, verdict, who, comment) for question in questions]
        return questions, await client.session(choice.session).answer(blocks)

    _report(choice.session, *run(connection, as_json, work), as_json)


def _report(session: str, questions: "list[Question]", receipt: "AnswerReceipt", as_json: bool) -> None:
    if as_json:
        print_json(receipt.model_dump(mode="json"))
        return
    for question in questions:
        for call in question.calls:
            shown = json.dumps(call.input, ensure_ascii=False)
            print(visible(f"{call.tool} {shown}"), file=sys.stderr)
    print(receipt_text(session, receipt))
