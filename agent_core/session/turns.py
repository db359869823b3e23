"""The life of a session's turns: which cycle is next, what its end does, and how a turn ends.

Longer than other modules: whatever takes a session from one status to the next stands here, so that it can be read
in one place that no status is left without a way on.
"""

from datetime import datetime
from typing import Any

from countersign.agent_core.calls_in_doubt import all_given_up
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, results_message
from countersign.agent_core.session.answering import merge, open_questions
from countersign.agent_core.session.recovery import adopt, doubt_lost, rebuild
from countersign.agent_core.session.state import QueuedPrompt, SessionState
from countersign.agent_core.wire import (
    DEADLINE_S,
    AuditEntry,
    AuditEvent,
    CycleInput,
    CycleOutcome,
    ErrorInfo,
    Pending,
    Question,
    Recovery,
    SessionResult,
    TurnProgress,
    timestamp,
)

LOST_CYCLES = 100
"""More than one cycle workflow runs: their numbers are skipped if nobody knows which ones were used, so
that no idempotency key and no question id comes back for another call."""

CYCLE_FAILURES = 3
"""Cycles that may fail as workflows in a row before the turn fails."""


class Turns:
    """A session's turns; `Session` adds what people send.

    Args:
        state: The state; changed in place.
    """

    def __init__(self, state: SessionState) -> None:
        self.state = state

    def next_cycle(self, now: datetime) -> CycleInput | None:
        """The cycle to run now, or None if the session waits. The session then counts as running."""
        state, given = self.state, None
        if state.status == "running":
            return None
        if state.pending is not None:
            if self._may_resume():
                state.resume_due = False
                given = self._input("resume")
                given.pending = state.pending.model_copy(deep=True)
        elif state.go_on:
            state.go_on = False
            given = self._input("continue")
            given.response, state.response = state.response, None
        elif state.prompts:
            queued = state.prompts.pop(0)
            if queued.resumes:  # what the turn has used so far counts on
                state.progress.forced = False
            else:
                state.turn += 1
                state.progress = TurnProgress()
                state.invocation_state = dict(state.options.invocation_state)
            given = self._input("prompt")
            given.prompt = queued.messages
        if given is not None:
            self._set_status("running", now)
        return given

    def _may_resume(self) -> bool:
        waits = self.state.options.resume == "all" and bool(self.open_questions())
        return self.state.pending is not None and self.state.resume_due and not waits

    @property
    def busy(self) -> bool:
        """True while a cycle runs or the next one is due; else the loop has stopped."""
        state = self.state
        may_begin = bool(state.prompts) and state.pending is None  # a prompt behind open questions waits for them
        return state.status == "running" or state.go_on or self._may_resume() or may_begin

    @property
    def last_turn(self) -> int:
        """The number of the last turn that is known of: the present one, or that of the last prompt that waits."""
        return self.state.turn + sum(not prompt.resumes for prompt in self.state.prompts)

    def _input(self, opens: Any) -> CycleInput:
        state, options = self.state, self.state.options
        return CycleInput(
            agent=state.agent,
            session_id=state.session_id,
            session_run=state.run,
            after_reset=state.after_reset,
            fresh=state.fresh,
            cycle=state.cycle + 1,
            opens=opens,
            agent_state=state.agent_state,
            handlers=state.handlers,
            invocation_state=state.invocation_state,
            limits=options.limits,
            progress=state.progress,
            model_calls=state.model_calls,
            handover_after_s=options.handover_after_s,
            default_deadline_s=options.deadline_s or DEADLINE_S,
            worker_deadline=options.deadline_s is None,
            approval_ttl_s=options.approval_ttl_s,
        )

    def finish_cycle(self, outcome: CycleOutcome, now: datetime, *, resume_is_a_turn: bool = False) -> None:
        """Take over what a cycle left behind.

        Args:
            outcome: That.
            now: The present moment.
            resume_is_a_turn: Whether a hook that goes on begins a turn of its own, as it once did.
        """
        state = self.state
        state.follow(outcome)
        state.cycle = max(state.cycle + 1, outcome.last_cycle)
        if not outcome.as_before:
            state.agent_state, state.handlers = outcome.agent_state, outcome.handlers
            state.invocation_state, state.fresh = outcome.invocation_state, outcome.fresh
        state.progress, state.model_calls, state.failures = outcome.progress, outcome.model_calls, 0
        for entry in outcome.audit:
            state.note(entry)
        asks = outcome.stop_reason == "interrupt" and outcome.pending is not None
        self._merge(outcome.pending if asks else None, now)
        if outcome.goes_on:
            state.pending, state.go_on, state.resume_due = None, True, False
            self._set_status("idle", now)
        elif asks:
            state.stop_with(self._result("interrupt", outcome.message, None))
            self._set_status("waiting", now)
            if not self.open_questions() and not state.resume_due:
                # Never seen, and it would wait for ever.
                error = ErrorInfo(type="CycleFailed", message="the cycle stopped for answers and asked nothing")
                self.fail_turn(error, now)
        else:
            output = outcome.structured_output
            self._end_turn(outcome.stop_reason, outcome.message, outcome.error, "Not run: the turn ended.", now, output)
            if outcome.resume and not state.closing and not state.stopping:
                state.prompts.insert(0, QueuedPrompt(messages=outcome.resume, resumes=not resume_is_a_turn))
        if state.stopping and state.status != "running":
            state.stopping = False
            if state.pending is not None or state.go_on:
                self._end_turn("cancelled", None, None, "Not run: the turn was stopped.", now)
        if state.closing and state.status == "waiting":
            self.stop(now, "the session was closed")  # its answers would be refused

    def _merge(self, pending: Pending | None, now: datetime) -> None:
        """Take a cycle's questions, if it left any, with the answers that came while it ran."""
        state = self.state
        for event, detail in merge(state.pending, pending, state.since):
            self._note(now, event, **detail)
        if pending is not None:
            state.pending = pending

    def recover(self, recovery: Recovery, given: CycleInput, now: datetime) -> None:
        """Go on after a cycle that failed as a workflow, from what it had finished.

        Args:
            recovery: What its history says.
            given: What it was started with.
            now: The present moment.
        """
        state = self.state
        if recovery.lost:
            self._lose(recovery.reason, given, now)
            return
        state.failures += 1
        rebuilt = rebuild(recovery, given)
        self._note(now, "cycle_failed", reason=recovery.reason, kept=rebuilt.kept, unknown=sorted(rebuilt.unknown))
        state.cycle = max([state.cycle + 1, *(cycle.cycle for cycle in recovery.cycles)])
        again = given.opens == "prompt" and not rebuilt.begun
        if again and not state.stopping and state.failures < CYCLE_FAILURES:
            # Nothing has happened yet: the prompt runs again, in the same turn.
            state.prompts.insert(0, QueuedPrompt(messages=given.prompt, resumes=True))
            rebuilt.messages.clear()
        if rebuilt.pending is None and state.pending is not None:  # it was done, whatever people were asked meanwhile
            self._merge(None, now)
            self._withdraw(now)
        adopt(rebuilt, state)
        if state.pending is None:
            state.go_on = given.opens != "prompt" or rebuilt.begun
        self._set_status("idle", now)
        if state.stopping:
            state.stopping = False
            self._end_turn("cancelled", None, None, "Not run: the turn was stopped.", now)
        elif state.failures >= CYCLE_FAILURES:
            state.failures = 0
            error = ErrorInfo(
                type="CycleFailed", message=f"{CYCLE_FAILURES} cycles failed in a row, the last one: {recovery.reason}"
            )
            self._end_turn("failed", None, error, f"Not run: {error.message}", now)

    def _lose(self, reason: str, given: CycleInput, now: datetime) -> None:
        """End the turn of a cycle that may have done anything: nothing of it is run again unasked."""
        state = self.state
        unknown = doubt_lost(state.pending, given.pending, reason) if state.pending and given.pending else []
        self._note(now, "cycle_failed", reason=reason, kept=0, unknown=unknown, lost=True)
        state.cycle += LOST_CYCLES
        state.stopping = False
        if not given.pending:
            state.extend(given.prompt)
        text = (
            f"cycle {given.cycle} failed: {reason}. What its model asked for may have run; look before you prompt again"
        )
        self.fail_turn(ErrorInfo(type="CycleFailed", message=text), now)

    def fail_turn(self, error: ErrorInfo, now: datetime) -> None:
        """End the turn because its next cycle can't even be started."""
        self._end_turn("failed", None, error, f"Not run: {error.message}", now)

    def _end_turn(
        self,
        stop_reason: str,
        message: Message | None,
        error: ErrorInfo | None,
        text: str,
        now: datetime,
        output: JsonObject | None = None,
    ) -> None:
        """End the turn with a valid history: each call without a result gets an error result."""
        state = self.state
        if state.pending is not None:
            self._withdraw(now)
            state.put_results(results_message(all_given_up(state.pending, text)), state.pending.message)
            state.pending = None
        state.go_on = state.resume_due = False
        state.response = None  # no hook has heard it to the end
        self._note(now, "turn_ended", stop_reason=stop_reason, error=error.model_dump() if error else None)
        self._set_status("idle", now)
        result = self._result(stop_reason, message, error)
        result.structured_output = output
        state.stop_with(result)

    def _withdraw(self, now: datetime) -> None:
        for question in self.open_questions():
            question.status = "withdrawn"
            self._note(now, "question_withdrawn", question=question.id, name=question.name)

    def stop(self, now: datetime, reason: str = "stopped") -> None:
        """Stop gracefully: questions are withdrawn at once; a running cycle stops after its tools."""
        self._note(now, "stop", reason=reason)
        unstarted, only = bool(self.state.prompts), self.state.options.lifetime == "turn"
        self.state.prompts.clear()
        if self.state.status == "running":
            self.state.stopping = True
        elif self.state.pending is not None or self.state.go_on:
            self._end_turn("cancelled", None, None, f"Not run: the turn was stopped ({reason}).", now)
        elif unstarted and only:
            self.state.turn = 1  # its only one: nobody should wait for another prompt
            self._end_turn("cancelled", None, None, "", now)

    # What it looks like

    def open_questions(self) -> list[Question]:
        """The questions that wait for an answer."""
        return open_questions(self.state.pending)

    def next_deadline(self) -> datetime | None:
        """When the next open question expires."""
        return min((datetime.fromisoformat(q.deadline) for q in self.open_questions() if q.deadline), default=None)

    def conversation(self) -> list[Message]:
        """All messages."""
        return self.state.conversation()

    @property
    def done(self) -> bool:
        """True if nothing is left to do and nothing more is taken."""
        state = self.state
        resting = state.status == "idle" and state.pending is None and not state.go_on and not state.prompts
        return resting and (state.closing or (state.options.lifetime == "turn" and state.turn > 0))

    def result(self) -> SessionResult:
        """How the loop stopped last."""
        last = self.state.last or self._result("not_started", None, None)
        return last.model_copy(update={"interrupts": self.open_questions(), "state": self.state.agent_state})

    def _result(self, stop_reason: str, message: Message | None, error: ErrorInfo | None) -> SessionResult:
        state = self.state
        return SessionResult(
            stop_reason=stop_reason,
            message=message,
            state=state.agent_state,
            usage=state.progress.usage,
            latency_ms=state.progress.latency_ms,
            cycles=state.progress.cycles,
            interrupts=self.open_questions(),
            error=error,
            turn=state.turn,
        )

    def _set_status(self, status: Any, now: datetime) -> None:
        self.state.status = status
        self.state.since = timestamp(now)

    def _note(self, now: datetime, event: AuditEvent, **detail: Any) -> None:
        found: JsonObject = detail
        self.state.note(AuditEntry(at=timestamp(now), event=event, cycle=self.state.cycle or None, detail=found))
