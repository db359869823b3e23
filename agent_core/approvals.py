"""Questions and their answers while a batch of calls is pending: the rules of docs/approvals.md as code.

`Ledger` keeps the questions of one pending batch; `Asking` is the interrupt port of one event in
one pass. Neither decides whether a call runs: `agent_core.cycle` does, with what they report.
"""

import copy
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from countersign.agent_core.interrupts import (
    UNSET,
    InterruptException,
    is_refusal,
    question_digest,
    question_id,
)
from countersign.agent_core.interventions.actions import Edit, Evaluate
from countersign.agent_core.json_values import JsonObject, canonical_json, check_json
from countersign.agent_core.void_approvals import why_void
from countersign.agent_core.wire import Pending, Question, QuestionScope, ShownCall, timestamp

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
        found = [q for q in self.of(index) if q.scope == scope and q.name == name]
        return max(found, key=lambda q: q.generation, default=None)

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
        last, void = self.latest(scope, index, ask.name), None
        if last is not None and last.status == "open":
            if last.digest == digest:
                return last
            last.status = "withdrawn"
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
            scope=scope, origin_cycle=origin, index=index, generation=generation, fault=void,
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

    def forget_inline(self, index: int) -> None:
        """Forget what was answered inline about a call: an approval covers one execution."""
        for key in [key for key in self._pending.remembered if key.startswith(f"{index}/")]:
            if ":answer/" in key or ":judged/" in key:
                del self._pending.remembered[key]

    def keep_inline(self, index: int, name: str, call: str) -> None:
        """Note that an inline approval came with another input: nobody is asked again about that call."""
        self._pending.remembered[f"{index}/{name}:answer/{call}"] = {"decision": "approve"}
        self._pending.remembered[f"{index}/{name}:judged/{call}"] = {"approved": True}

    def lapsed(self, question: Question) -> bool:
        """True if an answer is too old for its call to start now."""
        if question.answer is None or not question.answer.at:
            return False
        return self._now() - datetime.fromisoformat(question.answer.at) > self._approval_ttl

    def lapse_of(self, index: int) -> datetime | None:
        """When the first of the answers lapses that let a call run; None if it needed none."""
        given = [question.answer for question in [*self.of(index), *self.of(None)] if question.status == "answered"]
        return min((datetime.fromisoformat(a.at) + self._approval_ttl for a in given if a and a.at), default=None)

    def settle(self, index: int | None) -> list[Question]:
        """Take every question about a call off the table, because the call has its result.

        Returns:
            Those that were still open: they are withdrawn.
        """
        withdrawn = []
        for question in self.of(index):
            if question.status == "open":
                question.status = "withdrawn"
                withdrawn.append(question)
            elif question.status == "answered":
                question.status = "settled"
        return withdrawn

    def withdraw_unasked(self, scope: QuestionScope, index: int | None, asked: set[str]) -> None:
        """Withdraw open questions that this pass did not ask again."""
        for question in self.of(index):
            if question.scope == scope and question.status == "open" and question.name not in asked:
                question.status = "withdrawn"


@dataclass
class Asking:
    """The interrupts of one event in one pass: answers come from the ledger, questions are recorded.

    Attributes:
        callback: Which callback runs now: its place, or the handler's name; set by whoever calls it.
        asked: What was asked and has no answer, in order.
        consumed: Answered questions that this pass asked for again, by name.
        reasons: The reason that this pass gave, by name.
        edit: Who got an input from an approver that is not applied yet, and that input.
        inline: The call as it stood when it was approved inline, by the name of who asked.
        heard: Name and selected tool of the call as each handler heard it.
    """

    ledger: Ledger
    scope: QuestionScope
    index: int | None
    callback: str = ""
    edit: tuple[str, Any] | None = None
    inline: dict[str, str] = field(default_factory=dict)
    heard: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    consumed: dict[str, Question] = field(default_factory=dict)
    preempted: set[str] = field(default_factory=set)
    reasons: dict[str, Any] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)

    def ask(self, name: str, reason: Any, response: Any, answers: JsonObject | None) -> Any:
        """See `InterruptibleEvent.interrupt`."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"an interrupt's name must be non-empty text, not {name!r}")
        check_json(reason, f"the reason of interrupt {name!r}")
        if answers is not None:
            check_json(answers, f"the answers of interrupt {name!r}")
        if self._owners.setdefault(name, self.callback) != self.callback:
            raise ValueError(f"interrupt_name=<{name}> | interrupt name used more than once")
        if canonical_json(self.reasons.setdefault(name, copy.deepcopy(reason))) != canonical_json(reason):
            raise ValueError(f"interrupt_name=<{name}> | interrupt name used more than once, for two reasons")
        if response is not UNSET:
            check_json(response, f"the response of interrupt {name!r}")
            self.preempted.add(name)
            return response
        question = self.ledger.latest(self.scope, self.index, name)
        if question is not None and question.status == "answered" and question.answer is not None:
            given = question.answer.response
            # An approval holds for the reason that was shown; a refusal holds whatever changed.
            # After an edit it holds for the edited call, whatever the question would say of that one.
            same = question.edited is not None or canonical_json(question.reason) == canonical_json(reason)
            if (same and not self.ledger.lapsed(question)) or is_refusal(given, question.answers):
                self.consumed[name] = question
                return copy.deepcopy(given)
        if all(item.name != name for item in self.asked):
            self.asked.append(Ask(name, copy.deepcopy(reason), answers))
        raise InterruptException(name, reason)

    async def once(self, key: str, call: str, find_out: Callable[[], Awaitable[Any]]) -> Any:
        """See `BeforeToolCallEvent.once`."""
        return await self.ledger.once(f"{self.index}/{key}/{call}", find_out)

    async def judge(self, name: str, response: Any, evaluate: Evaluate) -> bool:
        """Whether an answer approves; judged once per answer and remembered with the question."""
        question = self.consumed.get(name)
        if question is not None and question.verdict is not None:
            return question.verdict
        verdict = evaluate(response)
        if isinstance(verdict, Awaitable):
            verdict = await verdict
        if isinstance(verdict, Edit):
            self.edit = (name, verdict.input)
            return True
        if question is not None:
            question.verdict = bool(verdict)
        return bool(verdict)

    def unasked(self) -> list[Question]:
        """Answered questions of this scope that this pass did not ask again: their code has changed."""
        return [
            question
            for question in self.ledger.of(self.index)
            if question.scope == self.scope
            and question.status == "answered"
            and question.name not in self.consumed
            and question.name not in self.preempted
            and all(ask.name != question.name for ask in self.asked)
        ]
