"""What people send to a session: prompts, answers, a close. Beside `Turns`, only this changes its state."""

from datetime import datetime
from typing import Any

from countersign.agent_core.answers import ParsedAnswer, check_prompt, parse_answers
from countersign.agent_core.errors import AnswerRefused, reason_of
from countersign.agent_core.json_values import JsonObject, json_size
from countersign.agent_core.messages import user_message
from countersign.agent_core.session.answering import question_for, record
from countersign.agent_core.session.state import QueuedPrompt
from countersign.agent_core.session.turns import Turns
from countersign.agent_core.unknown_outcomes import OUTCOME_CHOICES, UNKNOWN_OUTCOME_QUESTION, outcome_choice
from countersign.agent_core.wire import AcceptedAnswer, AnswerReceipt

QUEUED_PROMPTS, QUEUED_BYTES = 20, 500_000
"""Prompts that may wait for their turn, and what they may weigh, before no more are taken."""


class Session(Turns):
    """A session's state with everything that can happen to it; see `Turns` for the arguments."""

    def prompt(self, content: Any, now: datetime) -> None:
        """Queue a prompt: text or content blocks.

        Raises:
            AnswerRefused: If it is unusable, or the session waits for answers or is closed.
        """
        blocks = self.check_prompt(content)
        self.state.prompts.append(QueuedPrompt(messages=[user_message(blocks)]))
        self._note(now, "prompt_queued")

    def check_prompt(self, content: Any) -> list[JsonObject]:
        """What `prompt` checks, without changing anything.

        Raises:
            AnswerRefused: As `prompt` does.
        """
        self._check_open()
        blocks = check_prompt(content)
        if self.state.options.lifetime == "turn" and self.state.turn > 0:
            raise self._one_turn_only()
        if self.state.pending is not None and self.state.status == "waiting":
            ids = ", ".join(question.id for question in self.open_questions())
            raise AnswerRefused("interrupted", f"the session waits for answers to {ids}; answer them, or stop the turn")
        return blocks

    def check_room(self) -> None:
        """Refuse a prompt behind too many others.

        Raises:
            AnswerRefused: If so many wait already.
        """
        waiting = [prompt.messages for prompt in self.state.prompts]
        if len(waiting) >= QUEUED_PROMPTS or (waiting and json_size(waiting) >= QUEUED_BYTES):
            raise AnswerRefused(
                "too_many_waiting", f"{len(waiting)} prompts wait already; send the next one when a turn is over"
            )

    def check_only(self) -> None:
        """Refuse a prompt behind the one that a session of one turn has not begun with yet.

        Raises:
            AnswerRefused: If there is such a one.
        """
        if self.state.options.lifetime == "turn" and self.state.prompts:
            raise self._one_turn_only()

    def _one_turn_only(self) -> AnswerRefused:
        text = f"session {self.state.session_id} has one turn only; start it with lifetime open"
        return AnswerRefused("closed", text)

    def answer(self, raw: Any, now: datetime, channel: str) -> AnswerReceipt:
        """Take answers, all of them or none.

        Args:
            raw: One `interruptResponse` block, or a list of them.
            now: The present moment; held against the deadlines.
            channel: How they came, for the audit.

        Raises:
            AnswerRefused: If one of them can't be taken; then nothing has changed.
        """
        answers = self.check_answers(raw, now)
        self.expire(now)
        questions = [question_for(self.state.pending, answer, now) for answer in answers]
        accepted: list[AcceptedAnswer] = []
        for question, answer in zip(questions, answers, strict=True):
            fresh = record(question, answer, now, channel)
            if fresh is not None:
                self.state.resume_due = True
                told = {"name": question.name, "digest": question.digest, "answer": fresh.model_dump()}
                self._note(now, "answered", question=question.id, **told)
            status = "accepted" if fresh else "already_recorded"
            accepted.append(AcceptedAnswer(id=question.id, name=question.name, status=status))
        return AnswerReceipt(accepted=accepted, open=[question.id for question in self.open_questions()])

    def answer_asked_by(self, raw: Any, came: datetime) -> AnswerReceipt:
        """Take answers by signal that came before the session had the cycle's questions.

        Args:
            raw: As for `answer`.
            came: When they came; nobody can have meant a question that was asked later.

        Raises:
            AnswerRefused: As `answer` does, and if a question was asked later.
        """
        for answer in self.check_answers(raw, came):
            question = question_for(self.state.pending, answer, came)
            if datetime.fromisoformat(question.asked_at) > came:
                raise AnswerRefused("unknown_interrupt", f"{question.id} was asked after this answer had come")
        self.check_choices(raw)
        return self.answer(raw, came, "signal")

    def check_answers(self, raw: Any, now: datetime) -> list[ParsedAnswer]:
        """What `answer` checks, without changing anything.

        Raises:
            AnswerRefused: As `answer` does.
        """
        self._check_open()
        answers = parse_answers(raw)
        for answer in answers:
            question_for(self.state.pending, answer, now)
        return answers

    def check_choices(self, raw: Any) -> None:
        """Refuse answers to unknown outcomes that mean nothing: one that is misread would lose what a person knows.

        Raises:
            AnswerRefused: With what may be said.
        """
        asked = {question.id: question for question in self.open_questions()}
        for answer in parse_answers(raw):
            question = asked.get(answer.interrupt_id)
            if question is None or (question.scope, question.name) != ("core", UNKNOWN_OUTCOME_QUESTION):
                continue
            if outcome_choice(answer.response) is None:
                raise AnswerRefused(
                    "malformed",
                    f"{question.id} asks what became of a call; answer {OUTCOME_CHOICES}, as JSON, "
                    f"not {answer.response!r:.100}",
                )

    def refused(self, now: datetime, what: str, code: str, reason: str) -> None:
        """Record something that came in and was refused."""
        self._note(now, "refused", what=what, code=code, reason=reason_of(reason))

    def close(self, now: datetime) -> None:
        """Take nothing any more; a running turn ends first."""
        self.state.closing = True
        self._note(now, "close")
        if self.state.status == "waiting":
            self.stop(now, "the session was closed")

    def expire(self, now: datetime) -> None:
        """Mark the open questions whose deadline has passed."""
        for question in self.open_questions():
            if question.deadline is not None and datetime.fromisoformat(question.deadline) <= now:
                question.status = "expired"
                self.state.resume_due = True
                self._note(now, "expired", question=question.id, name=question.name)

    def _check_open(self) -> None:
        if self.state.closing or self.state.status == "closed":
            raise AnswerRefused("closed", f"session {self.state.session_id} is closed; start another one")
