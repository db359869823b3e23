"""How client code answers a session's questions, and how anything at all is sent to a session."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from temporalio.client import Client
from temporalio.exceptions import TemporalError

from countersign.agent_client.answers import (
    OneAnswer,
    Responder,
    answer_blocks,
    is_answer_of,
    request_id,
    verdict_block,
)
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.sending import DEFAULT_PATIENCE, Update, deliver, uncancelled
from countersign.agent_client.starting import checked
from countersign.agent_client.translation import translated
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.json_values import JsonObject, JsonValue
from countersign.agent_core.visible import DIGEST_DIGITS
from countersign.agent_core.wire import (
    ANSWER_UPDATE,
    RESPOND_SIGNAL,
    AcceptedAnswer,
    AnswerReceipt,
    Question,
    timestamp,
)

EARLY_S = 0.5
"""After this time an answer to a question that nobody seems to have asked is sent once more."""


class SessionAnswers(SessionReader):
    """Answers one session's questions; see `SessionHandle` for the arguments and the errors of all methods."""

    def __init__(self, temporal: Client, session_id: str, *, patience: timedelta = DEFAULT_PATIENCE) -> None:
        super().__init__(temporal, session_id)
        self._patience = patience

    async def answer(
        self,
        answers: OneAnswer | Sequence[OneAnswer],
        *,
        digest: str | None = None,
        responder: Responder | None = None,
        comment: str | None = None,
        update_id: str | None = None,
    ) -> AnswerReceipt:
        """Answer questions, all or none, and know that it was taken.

        Args:
            answers: `(interrupt_id, response)`, an interruptResponse block, or a list of those.
            digest: The question's digest as it was shown.
            responder: Who answers.
            comment: Their words.
            update_id: An id of your own for this decision, kept for every re-send of it; a random one if None.

        Returns:
            What was taken and what is still open.

        Raises:
            AnswerRefused: Refused, with a code; nothing has changed.
            NoReplyError: Not confirmed in time; sending the same again is safe.
            ValueError: For an update id that is blank.
        """
        update_id = request_id(ANSWER_UPDATE, update_id)
        blocks = answer_blocks(answers, digest=digest, responder=responder, comment=comment)
        got = await self._deliver(ANSWER_UPDATE, checked(blocks, "the answers"), update_id=update_id)
        return AnswerReceipt.model_validate(got)

    async def approve(
        self,
        interrupt_id: str,
        *,
        digest: str | None = None,
        responder: Responder | None = None,
        comment: str | None = None,
        update_id: str | None = None,
    ) -> AnswerReceipt:
        """Approve a question with its own word for it, bound to what was seen.

        Args:
            interrupt_id: The question's id.
            digest: The question's digest as it was shown, or at least its first 16 digits. Without it, the
                question is approved as it stands now.
            responder: Who answers.
            comment: Their words, for the audit trail.
            update_id: As for `answer`.

        Returns:
            As `answer` does; "already_recorded" if the question has this very answer of this responder.

        Raises:
            AnswerRefused: "outdated" if the question has changed since; or another code.
            ValueError: For a digest that is too short, a question that names no answer for that, or a blank update id.
        """
        return await self._verdict("approve", interrupt_id, digest, responder, comment, update_id)

    async def deny(
        self,
        interrupt_id: str,
        *,
        digest: str | None = None,
        responder: Responder | None = None,
        comment: str | None = None,
        update_id: str | None = None,
    ) -> AnswerReceipt:
        """Deny a question with its own word for it; arguments, result and errors are those of `approve`."""
        return await self._verdict("deny", interrupt_id, digest, responder, comment, update_id)

    async def _verdict(
        self,
        verdict: str,
        interrupt_id: str,
        digest: str | None,
        responder: Responder | None,
        comment: str | None,
        update_id: str | None,
    ) -> AnswerReceipt:
        update_id = request_id(ANSWER_UPDATE, update_id)
        if digest is not None and len(digest) < DIGEST_DIGITS:
            raise ValueError(f"digest {digest!r}: give {DIGEST_DIGITS} or more digits of it, as the question has it")
        block = partial(verdict_block, verdict=verdict, responder=responder, comment=comment)
        try:
            question = await self.question(interrupt_id, digest or "")
        except AnswerRefused as refused:
            return await recorded(self, refused, interrupt_id, digest or "", block)
        return await self.answer(block(question), update_id=update_id)

    async def respond(
        self,
        answers: OneAnswer | Sequence[OneAnswer],
        *,
        digest: str | None = None,
        responder: Responder | None = None,
        comment: str | None = None,
    ) -> None:
        """Answer without waiting for a confirmation; a refusal shows in the audit trail only.

        It says when it was sent: if no worker takes it for long, its approval lapses from then on.
        """
        blocks = answer_blocks(answers, digest=digest, responder=responder, comment=comment)
        now = timestamp(datetime.now(UTC))
        blocks = [block if "at" in block["interruptResponse"] else {"at": now, **block} for block in blocks]
        await self._signal(RESPOND_SIGNAL, checked(blocks, "the answers"))

    async def _deliver(
        self, name: str, argument: JsonValue, *, wait_long: bool = False, update_id: str | None = None
    ) -> Any:
        update = Update(self.id, name, argument, update_id or request_id(name))
        try:
            return await deliver(self._temporal, update, self._patience, wait_long=wait_long)
        except AnswerRefused as refusal:
            if refusal.code not in ("not_interrupted", "unknown_interrupt"):
                raise
        # A query may show a question one workflow task before the session takes answers to it.
        await asyncio.sleep(EARLY_S)
        return await deliver(self._temporal, update, self._patience, wait_long=wait_long)

    async def _signal(self, name: str, argument: JsonValue) -> None:
        handle = self._temporal.get_workflow_handle(self.id)
        try:
            await uncancelled(lambda: handle.signal(name, argument))
        except TemporalError as error:
            raise await translated(error, self._temporal, self.id) from error


async def recorded(
    session: SessionReader,
    refused: AnswerRefused,
    interrupt_id: str,
    digest: str,
    block: Callable[[Question], JsonObject],
) -> AnswerReceipt:
    """What comes of an answer to a question that is not open: one sent again is acknowledged.

    Args:
        session: Whose question it is.
        refused: Why the question was not to be had.
        interrupt_id: Its id.
        digest: Beginning of the digest that was seen; "" for any.
        block: Makes the answer to it.

    Raises:
        AnswerRefused: As it came, if the question has not this very answer of this responder.
    """
    had = await _answered(session, interrupt_id) if refused.code == "already_answered" else None
    if had is None:
        raise refused
    try:
        answer = block(had)
    except ValueError:  # it has no word for that, so it was not answered with it
        raise refused from None
    if not is_answer_of(had, answer, digest):
        raise refused
    line = AcceptedAnswer(id=had.id, name=had.name, status="already_recorded")
    return AnswerReceipt(accepted=[line], open=[question.id for question in await session.interrupts()])


async def _answered(session: SessionReader, interrupt_id: str) -> Question | None:
    """A question that has its answer, as the audit trail knows both; None if none of that id has."""
    for entry in reversed(await session.audit()):
        if entry.event == "answered" and entry.detail.get("question") == interrupt_id:
            return Question.model_validate({**entry.detail, "id": interrupt_id, "status": "answered"})
    return None
