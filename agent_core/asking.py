"""The interrupts of one event in one pass: answers come from the ledger, questions go there."""

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from countersign.agent_core.approvals import Ask, Ledger
from countersign.agent_core.interrupts import UNSET, InterruptException, refused
from countersign.agent_core.interventions.actions import Edit, Evaluate
from countersign.agent_core.json_values import JsonObject, canonical_json, check_json
from countersign.agent_core.settling import settled
from countersign.agent_core.wire import InlineAnswer, Question, QuestionScope


@dataclass
class Asking:
    """The interrupts of one event in one pass: answers come from the ledger, questions are recorded.

    Attributes:
        callback: Which callback runs now: its place, or the handler's name; set by whoever calls it.
        asked: What was asked and has no answer, in order.
        consumed: Answered questions that this pass asked for again, by name.
        reasons: The reason that this pass gave, by name.
        edit: Who got an input from an approver that is not applied yet, and that input.
        inline: What was said inline about the call as it then stood, by the name of who asked.
        heard: Name and selected tool of the call as each handler heard it.
        cancelled_by: The hook or the handlers that cancelled last, by name; empty if nobody knows.
    """

    ledger: Ledger
    scope: QuestionScope
    index: int | None
    callback: str = ""
    edit: tuple[str, Any] | None = None
    inline: dict[str, InlineAnswer] = field(default_factory=dict)
    heard: list[tuple[str, Any]] = field(default_factory=list)
    cancelled_by: str = ""
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
        question = self.ledger.standing(self.scope, self.index, name)
        if question is not None and question.status == "answered" and question.answer is not None:
            # An approval holds for the reason that was shown. After an edit it holds for the edited call, whatever
            # the question would say of that one. A refusal holds whatever changed, and whatever is known beforehand.
            same = question.edited is not None or canonical_json(question.reason) == canonical_json(reason)
            holds = response is UNSET and same and not self.ledger.lapsed(question)
            if holds or refused(question):
                self.consumed[name] = question
                return copy.deepcopy(question.answer.response)
        if response is not UNSET:
            self.preempted.add(name)
            return response
        if all(item.name != name for item in self.asked):
            self.asked.append(Ask(name, copy.deepcopy(reason), answers))
        raise InterruptException(name, reason)

    async def once(self, key: str, call: str, find_out: Callable[[], Awaitable[Any]]) -> Any:
        """See `BeforeToolCallEvent.once`."""
        return await self.ledger.once(f"{self.index}/{key}/{call}", find_out)

    async def inline_answer(self, name: str, call: str, ask: Callable[[], Awaitable[Any]]) -> InlineAnswer:
        """What was said inline about a call; whoever asks is asked once for the call as it stands."""
        assert self.index is not None  # only calls are asked about inline
        return await self.ledger.inline(self.index, name, call, ask)

    async def judge(self, name: str, response: Any, evaluate: Evaluate) -> bool:
        """Whether an answer approves; judged once per answer and remembered with the question."""
        question = self.consumed.get(name)
        if question is not None and question.verdict is not None:
            return question.verdict
        verdict = await settled(evaluate(response))
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
