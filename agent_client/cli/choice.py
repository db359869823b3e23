"""Which of a session's open questions an answer is for."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from countersign.agent_client.cli.running import UsageError
from countersign.agent_client.shell import command
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.visible import DIGEST_DIGITS

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_core.json_values import JsonObject
    from countersign.agent_core.wire import AnswerReceipt, Question


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
        self._settled: list[Question] | None = None

    def settle(self, questions: "list[Question]") -> None:
        """Keep to these, as they were shown; the session refuses what has changed since."""
        self._settled = questions

    async def questions(self, client: "AgentClient") -> "list[Question]":
        """The questions.

        Raises:
            UsageError: If it isn't clear which one, with those that are open.
            AnswerRefused: If it is not open any more, or has another digest than the person saw.
        """
        from countersign.agent_client.reading import unchanged

        if self._settled is not None:
            return self._settled
        self._check()
        reader, digest = client.session(self.session), self._digest or ""
        if self._interrupt_id is not None:
            return [await reader.question(self._interrupt_id, digest)]
        open_now = await reader.interrupts()
        if not open_now:
            seen = command("show", self.session)
            raise AnswerRefused("not_interrupted", f"session {self.session!r} has no open question; see: {seen}")
        if self._every:
            return open_now
        if len(open_now) > 1:
            listed = "; ".join(f"{question.id} ({question.name})" for question in open_now)
            raise UsageError(f"{len(open_now)} questions are open; name one, or give --all: {listed}")
        return [unchanged(self.session, open_now[0], digest)]

    async def recorded(
        self, client: "AgentClient", refused: AnswerRefused, block: "Callable[[Question], JsonObject]"
    ) -> "AnswerReceipt":
        """See `session_answers.recorded`: the chosen question is not open, and may have this very answer."""
        from countersign.agent_client.session_answers import recorded

        session = client.session(self.session)
        return await recorded(session, refused, self._interrupt_id or "", self._digest or "", block)

    def _check(self) -> None:
        if self._every and (self._interrupt_id is not None or self._digest is not None):
            raise UsageError("--all goes with neither INTERRUPT_ID nor --digest; leave one out")
        if self._digest is not None and len(self._digest) < DIGEST_DIGITS:
            raise UsageError(f"--digest needs {DIGEST_DIGITS} or more digits, as the question's card shows them")
