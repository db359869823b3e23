"""The signals that carry something: used, or recorded as refused. None of them can fail the session."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from temporalio import workflow

from countersign.agent_core.answers import check_said_alike
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.session import Session
from countersign.workflows.intake import Signals

ROOM_PATCH = "prompts-have-a-bound"
"""Since 2026-11-30. Before it, a session took any number of prompts."""

ONLY_PATCH = "one-turn-takes-one-prompt"
"""Since 2026-11-30. Before it, a session of one turn took prompts that came before it had begun."""

CHOICE_PATCH = "an-outcome-is-one-of-three"
"""Since 2026-11-30. Before it, any answer to an unknown outcome that was no other one counted as "skip"."""

ALIKE_PATCH = "what-is-said-twice-is-said-alike"
"""Since 2026-11-30. Before it, one question might stand twice in a signal, with two digests; the last one counted."""

EARLY_PATCH = "an-answer-may-come-a-task-early"
"""Since 2026-11-30. Before it, a signal with such an answer was refused."""

NOT_ASKED = ("not_interrupted", "unknown_interrupt")

EARLY_ANSWERS = 1_000
"""Signals that are looked at again when the cycle has ended; more are refused at once."""


class Inbox:
    """What signals do to a session.

    Args:
        session: The session.
        wake: Called after each of them.
    """

    def __init__(self, session: Session, wake: Callable[[], None]) -> None:
        self._session, self._wake = session, wake
        self._signals = Signals()
        self._early: list[tuple[Any, datetime]] = []

    def respond(self, raw: Any) -> None:
        """Take answers."""
        self._use("respond", lambda: self._respond(self._signals.decoded(raw)))

    def prompt(self, raw: Any) -> None:
        """Queue a prompt."""
        self._use("prompt", lambda: self._prompt(self._signals.decoded(raw)))

    def unknown(self, name: str) -> None:
        """Record a signal that nobody knows."""
        self._session.refused(workflow.now(), name[:100], "malformed", "no such signal; send respond, prompt or stop")
        self._wake()

    def look_again(self) -> None:
        """Take answers that came while a cycle ran, and named a question that nobody had asked.

        A query that meets a worker without this session shows what a cycle has asked before any workflow task has
        taken the cycle's outcome. An answer to that is right, and one task too early.
        """
        early, self._early = self._early, []
        for value, came in early:
            self._use("respond", partial(self._session.answer_asked_by, value, came))

    def _respond(self, value: Any) -> None:
        early = self._is_early(value)
        _since(ALIKE_PATCH, lambda: check_said_alike(value))
        if early:
            self._early.append((value, workflow.now()))
            return
        _since(CHOICE_PATCH, lambda: self._session.check_choices(value))
        self._session.answer(value, workflow.now(), "signal")

    def _is_early(self, value: Any) -> bool:
        """Whether answers may be right once the cycle has ended; False if they may be taken now.

        Raises:
            AnswerRefused: If neither is so.
        """
        try:
            self._session.check_answers(value, workflow.now())
        except AnswerRefused as refusal:
            early = refusal.code in NOT_ASKED and self._session.state.status == "running"
            if early and len(self._early) < EARLY_ANSWERS and workflow.patched(EARLY_PATCH):
                return True
            raise
        return False

    def _prompt(self, value: Any) -> None:
        _since(ONLY_PATCH, self._session.check_only)
        _since(ROOM_PATCH, self._session.check_room)
        self._session.prompt(_content(value), workflow.now())

    def _use(self, what: str, use: Callable[[], object]) -> None:
        try:
            use()
        except AnswerRefused as refusal:
            self._session.refused(workflow.now(), what, refusal.code, str(refusal))
        except ValueError as error:
            self._session.refused(workflow.now(), what, "malformed", str(error))
        self._wake()


def _since(patch: str, check: Callable[[], None]) -> None:
    """Refuse what `check` refuses, if this history is not from before it did."""
    try:
        check()
    except AnswerRefused:
        if workflow.patched(patch):
            raise


def _content(value: Any) -> Any:
    """A prompt's content: as it is, or under "prompt"."""
    return value["prompt"] if isinstance(value, dict) and "prompt" in value else value
