"""Questions and their answers while a batch of calls is pending: the rules of docs/approvals.md as code.

`Ledger` keeps the questions of one pending batch; `asking` has the interrupt port of one event in
one pass. Neither decides whether a call runs: `agent_core.cycle` does, with what they report.
"""

import copy
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from countersign.agent_core.interrupts import (
    question_digest,
    question_id,
    refused,
)
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.void_approvals import why_void
from countersign.agent_core.wire import InlineAnswer, Pending, Question, QuestionScope, ShownCall, timestamp

POLICY_CHANGED_QUESTION = "policy-changed"
INPUT_CHANGED_QUESTION = "input-changed"
RUN_AGAIN_QUESTION = "run-again"


@dataclass(frozen=True)
class Ask:
    """A question that was recorded and waits to be shown."""

    name: str
    reason: Any
    answers: JsonObject | None


class Ledger:
    """The questions of one pending batch.

    Args:
        session_id: Part of every question's id.
        pending: The batch; its list of questions is changed in place.
        now: The present moment.
        deadline: How long a question waits before it expires.
        approval_ttl: How long an approval holds if its call has not started.
    """

    def __init__(
        self,
        session_id: str,
        pending: Pending,
        now: Callable[[], datetime],
        deadline: timedelta,
        approval_ttl: timedelta,
    ) -> None:
        self._session_id = session_id
        self._pending = pending
        self._now = now
        self._deadline = deadline
        self._approval_ttl = approval_ttl
        self.void: set[str] = set()  # questions opened because an approval is void; their `fault` says why

    def of(self, index: int | None) -> Iterator[Question]:
        """The questions about one call, or about the batch (None)."""
        return (question for question in self._pending.questions if question.index == index)

    def latest(self, scope: QuestionScope, index: int | None, name: str) -> Question | None:
        """The newest question of that name."""
        return max(self._named(scope, index, name), key=lambda q: q.generation, default=None)

    def standing(self, scope: QuestionScope, index: int | None, name: str) -> Question | None:
        """The same, but while that one is open, an earlier one that was refused when it was not asked any more."""
        latest = self.latest(scope, index, name)
        if latest is None or latest.status != "open":
            return latest
        earlier = self._named(scope, index, name)
        return next((q for q in earlier if q.status == "answered" and refused(q)), latest)

    def _named(self, scope: QuestionScope, index: int | None, name: str) -> list[Question]:
        return [q for q in self.of(index) if q.scope == scope and q.name == name]

    def open(
        self, scope: QuestionScope, index: int | None, ask: Ask, shown: list[ShownCall], *, fresh: bool = False
    ) -> Question:
        """Open a question, or find it open already with the very same content.

        A question of the same name with other content is withdrawn and asked anew.

        Args:
            scope: Who asks.
            index: Which call it is about; None for the batch.
            ask: Name, reason, answers.
            shown: What will run if it is approved.
            fresh: True to ask again although the newest question is answered.
        """
        digest = question_digest(ask.name, ask.reason, shown)
        last, void, fault = self.latest(scope, index, ask.name), None, None
        if last is not None and last.status == "open":
            if last.digest == digest:
                return last
            last.status, fault = "withdrawn", last.fault
        elif last is not None and last.status == "answered" and (fresh or last.digest != digest):
            void = why_void(last, ask.reason, digest, lapsed=self.lapsed(last))
            last.status = "settled"
        generation = 0 if last is None else last.generation + 1
        origin, now = self._pending.origin_cycle, self._now()
        question = Question(
            id=question_id(self._session_id, origin, index, scope, ask.name, generation),
            name=ask.name,
            reason=ask.reason,
            calls=shown,
            digest=digest,
            answers=ask.answers or {"approve": "y", "deny": "n"},
            asked_at=timestamp(now),
            deadline=timestamp(now + self._deadline),
            scope=scope, origin_cycle=origin, index=index, generation=generation, fault=void or fault,
        )  # fmt: skip
        self._pending.questions.append(question)
        self.void |= {question.id} if void else set()
        return question

    async def once(self, key: str, find_out: Callable[[], Awaitable[Any]]) -> Any:
        """What was found out under a key, or find it out now and keep it with the batch.

        Raises:
            TypeError: If it is not JSON.
        """
        if key not in self._pending.remembered:
            found = await find_out()
            check_json(found, key)
            self._pending.remembered[key] = found
        return copy.deepcopy(self._pending.remembered[key])

    async def inline(self, index: int, name: str, call: str, ask: Callable[[], Awaitable[Any]]) -> InlineAnswer:
        """What was said inline about a call as it stands, or ask now and keep it with the batch.

        Raises:
            TypeError: If it is not JSON.
        """
        for answer in self._pending.inline.get(index, []):
            if (answer.name, answer.call) == (name, call):
                return answer
        response = await ask()
        check_json(response, f"what the inline ask of {name} returned")
        return self.keep_inline(index, name, call, response)

    def keep_inline(self, index: int, name: str, call: str, response: Any) -> InlineAnswer:
        """Keep what was said inline about a call as it stands."""
        answer = InlineAnswer(name=name, call=call, response=response, at=timestamp(self._now()))
        self._pending.inline.setdefault(index, []).append(answer)
        return answer

    def forget_inline(self, index: int) -> None:
        """Forget what was answered inline about a call: an approval covers one execution."""
        self._pending.inline.pop(index, None)

    def forget_lapsed(self, index: int) -> None:
        """Forget inline approvals of a call that are too old for it to start now: who gave them is asked once more."""
        answers = self._pending.inline.get(index, [])
        answers[:] = [answer for answer in answers if not (answer.approved and self._too_old(answer.at))]

    def lapsed(self, question: Question) -> bool:
        """True if an answer is too old for its call to start now."""
        if question.answer is None or not question.answer.at:
            return False
        return self._too_old(question.answer.counts_from)

    def _too_old(self, at: str) -> bool:
        return self._now() - datetime.fromisoformat(at) > self._approval_ttl

    def lapse_of(self, index: int) -> datetime | None:
        """When the first of the answers lapses that let a call run; None if it needed none.

        One that has lapsed already lets nothing run: the call has another one, or was asked about anew.
        """
        given = [
            question.answer.counts_from
            for question in [*self.of(index), *self.of(None)]
            if question.status == "answered" and question.answer and question.answer.at
            and not (refused(question) or self.lapsed(question))
        ]  # fmt: skip
        given += [answer.at for answer in self._pending.inline.get(index, []) if answer.approved]
        return min((datetime.fromisoformat(at) + self._approval_ttl for at in given), default=None)

    def batch_lapsed(self) -> bool:
        """True if an answer to a question about the whole batch is too old."""
        return any(question.status == "answered" and self.lapsed(question) for question in self.of(None))

    def settle(self, index: int | None) -> None:
        """Take every question about a call off the table, because the call has its result."""
        for question in self.of(index):
            if question.status in ("open", "answered"):
                question.status = "withdrawn" if question.status == "open" else "settled"

    def withdraw_unasked(self, scope: QuestionScope, index: int | None) -> None:
        """Withdraw open questions that this pass did not ask again."""
        for question in self.of(index):
            if question.scope == scope and question.status == "open":
                question.status = "withdrawn"
