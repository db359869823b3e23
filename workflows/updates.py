"""The session's updates: checked before they enter the history, remembered for whoever sends them again."""

from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from countersign.agent_core.answers import check_said_alike, parse_answers
from countersign.agent_core.errors import AnswerRefused, reason_of
from countersign.agent_core.json_values import JsonObject, check_json, digest
from countersign.agent_core.session import Session
from countersign.agent_core.session.state import RememberedUpdate
from countersign.agent_core.wire import AcceptedAnswer, SessionResult
from countersign.workflows.intake import decoded

WAITING_INVOKES = 5
"""Invokes that may wait at once; Temporal takes ten updates in flight, and answers must get through."""

MOVED = "moved"


class Updates:
    """What updates do to a session.

    Args:
        session: The session.
        wake: Called after each change.
        refused: Told of each update that is refused: its name and the code.
    """

    def __init__(self, session: Session, wake: Callable[[], None], refused: Callable[[str, str], None]) -> None:
        self._session = session
        self._wake = wake
        self._refused = refused
        self._waiting = 0
        self._moving = False

    def move(self) -> None:
        """The run is about to end: waiting invokes return, so that their clients ask the next run."""
        self._moving = True

    def check(self, raw: Any, check: Callable[[Any], None]) -> None:
        """Refuse an update, before it enters the history.

        Raises:
            ApplicationError: With the refusal's code as its type.
        """
        try:
            value = decoded(raw)
            check_json(value, "the update")  # its digest is remembered
            if not self._known(value):
                check(value)
        except AnswerRefused as refusal:
            raise self._refuse(refusal) from refusal
        except (TypeError, ValueError) as error:
            raise self._refuse(AnswerRefused("malformed", str(error))) from error

    def _refuse(self, refusal: AnswerRefused) -> ApplicationError:
        info = workflow.current_update_info()
        self._refused(info.name if info else "", refusal.code)
        return _refusal(refusal)

    def check_answer(self, value: Any) -> None:
        """What `answer` checks."""
        self._session.check_answers(value, workflow.now())
        check_said_alike(value)
        self._session.check_choices(value)

    def check_invoke(self, value: Any) -> None:
        """What `invoke` checks."""
        if self._waiting >= WAITING_INVOKES:
            raise AnswerRefused(
                "too_many_waiting", f"{WAITING_INVOKES} invokes wait already; use a signal, or wait for them"
            )
        kind, content = _invocation(value)
        if kind == "responses":
            self._session.check_answers(content, workflow.now())
            check_said_alike(content)
            self._session.check_choices(content)
        elif kind == "prompt":
            self._session.check_prompt(content)
            self._session.check_only()
            self._session.check_room()
        elif not isinstance(content, int) or content > self._session.last_turn:
            raise AnswerRefused("malformed", f"turn must be the number of a turn, not {content!r:.100}")

    def answer(self, value: Any) -> JsonObject:
        """Take answers."""
        known = self._remembered(value)
        if known is not None:  # what is open is not remembered with each answer: hundreds may be
            known = {**known, "open": [question.id for question in self._session.open_questions()]}
            if known.get("accepted") == []:  # shed
                known["accepted"] = _recorded(value)
            return known
        try:
            receipt = self._session.answer(value, workflow.now(), "update").model_dump(mode="json")
        except AnswerRefused as refusal:
            raise _refusal(refusal) from refusal
        self._remember(value, {**receipt, "open": []})
        self._wake()
        return receipt

    async def invoke(self, value: Any) -> JsonObject:
        """Take a prompt or answers and wait until the loop stops again."""
        known = self._remembered(value)
        if known is not None:
            return known
        kind, content = _invocation(value)
        now = workflow.now()
        try:
            if kind == "responses":
                self._session.answer(content, now, "invoke")
            elif kind == "prompt":
                self._session.prompt(content, now)
        except AnswerRefused as refusal:
            raise _refusal(refusal) from refusal
        turn = {"turn": content, "prompt": self._session.last_turn}.get(kind, self._session.state.turn)
        self._remember(value, {MOVED: True, "turn": turn})
        self._wake()
        self._waiting += 1
        try:
            await workflow.wait_condition(lambda: self._moving or self._stopped(turn))
        finally:
            self._waiting -= 1
        if not self._stopped(turn):
            return {MOVED: True, "turn": turn}
        told = self._result_of(turn)
        self._remember(value, told)
        return told

    def _result_of(self, turn: int) -> JsonObject:
        """How the loop has stopped, for who waits for this turn."""
        state = self._session.state
        late = state.late_result(turn) if state.turn > turn else None
        if late is not None:
            return late
        told: JsonObject = self._stop_of(turn).model_dump(mode="json")
        return told

    def _stop_of(self, turn: int) -> SessionResult:
        result = self._session.result()
        if self._session.state.turn >= turn:
            return result
        if self._session.last_turn >= turn:  # it is still to come: a turn before it waits for answers
            return result.model_copy(update={"turn": turn})
        # A stop has taken the prompt away.
        return result.model_copy(update={"stop_reason": "cancelled", "message": None, "turn": turn})

    def _stopped(self, turn: int) -> bool:
        """True once the loop has stopped in this turn, or a later one."""
        state = self._session.state
        if state.turn > turn or state.status == "closed":
            return True
        return not self._session.busy  # also in an earlier turn: it waits for answers, or a stop has cleared the prompt

    def _known(self, value: Any) -> bool:
        return self._remembered(value) is not None

    def _remembered(self, value: Any) -> JsonObject | None:
        """The outcome of this very update, if it came before.

        Raises:
            AnswerRefused: If its id came before with other content.
        """
        info = workflow.current_update_info()
        known = self._session.state.updates.get(info.id) if info else None
        if known is None:
            return None
        if known.digest != digest(value):
            raise AnswerRefused("update_id_reused", "this update id was used before, for other content; send a new id")
        remembered: JsonObject = known.result
        return remembered

    def _remember(self, value: Any, result: JsonObject) -> None:
        info = workflow.current_update_info()
        if info is not None:
            self._session.state.remember(info.id, RememberedUpdate(digest=digest(value), result=result))


def _invocation(value: Any) -> tuple[str, Any]:
    """What an invoke carries: ("responses" | "prompt" | "turn", content)."""
    if isinstance(value, dict):
        for key in ("responses", "prompt", "turn"):
            if key in value:
                return key, value[key]
    blocks = value if isinstance(value, list) else [value]
    answers = any(isinstance(block, dict) and "interruptResponse" in block for block in blocks)
    return ("responses" if answers else "prompt"), value


def _recorded(value: Any) -> list[JsonObject]:
    """What a receipt says of answers that came before, if no more is known of them."""
    answers = parse_answers(value)
    lines = [AcceptedAnswer(id=answer.interrupt_id, name="", status="already_recorded") for answer in answers]
    return [line.model_dump(mode="json") for line in lines]


def _refusal(refusal: AnswerRefused) -> ApplicationError:
    return ApplicationError(reason_of(refusal), type=refusal.code, non_retryable=True)
