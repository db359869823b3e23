"""Counts what happens to a session, for dashboards and alerts; the only place in workflows that does.

It reads the audit trail, into which every change goes anyway, and adds up what is new there since it
looked last. The engine's meter keeps quiet while a history is replayed, and nothing here is a command.
Labels are few and bounded: the agent, and words of a fixed list; never a session, a tool or a person.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.common import MetricMeter

from countersign.agent_core.answers import REFUSAL_CODES
from countersign.agent_core.interrupts import is_refusal
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.messages import no_usage
from countersign.agent_core.plain_answers import approves
from countersign.agent_core.session import Session
from countersign.agent_core.wire import (
    ANSWER_UPDATE,
    CLOSE_UPDATE,
    INVOKE_UPDATE,
    PROMPT_SIGNAL,
    RESPOND_SIGNAL,
    SESSION_WORKFLOW,
    AuditEntry,
    AuditEvent,
    Question,
)

DECISION_SECONDS = "countersign_decision_seconds"

COUNTERS = {
    "countersign_questions_asked_total": "Questions put to people",
    "countersign_answers_total": "Answers taken, by decision: approved, denied, other",
    "countersign_answers_refused_total": "Answers, prompts and signals that were refused, by code",
    "countersign_questions_expired_total": "Questions that nobody answered in time",
    "countersign_questions_withdrawn_total": "Questions that could not be answered any more",
    "countersign_unknown_outcomes_total": "Tool calls that may have run, so that a person was asked",
    "countersign_calls_not_taken_total": "Tool calls that nobody ran: no worker with that code took them in time",
    "countersign_turns_total": "Turns that ended, by stop reason",
    "countersign_cycles_failed_total": "Cycles that failed as workflows and were recovered",
    "countersign_model_tokens_total": "Tokens that models used, by kind: input, output",
}

_CHANNELS = frozenset({ANSWER_UPDATE, INVOKE_UPDATE, CLOSE_UPDATE, PROMPT_SIGNAL, RESPOND_SIGNAL})
_STOP_REASONS = frozenset(
    "end_turn cancelled failed max_tokens stop_sequence content_filtered guardrail_intervened "
    "limit_turns limit_total_tokens limit_output_tokens".split()
)
_KNOWN_LABELS: dict[str, list[dict[str, str]]] = {
    "countersign_answers_total": [{"decision": word} for word in ("approved", "denied", "other")],
    "countersign_turns_total": [{"stop_reason": word} for word in sorted(_STOP_REASONS)],
    "countersign_model_tokens_total": [{"kind": word} for word in ("input", "output")],
    "countersign_answers_refused_total": [],  # too many codes and channels for series that may never count
}
"""What a counter's series are told apart by besides the agent; of one that is not here there is one for each agent."""


def from_zero(meter: MetricMeter, namespace: str, task_queue: str, agents: Iterable[str]) -> None:
    """Begin the counters of a process at 0; one that appears with its first count never rises for Prometheus.

    Args:
        meter: Of the process.
        namespace: Where it works; the engine labels what a workflow counts with it.
        task_queue: The same.
        agents: Names of those that are served on that queue.
    """
    own = {"namespace": namespace, "task_queue": task_queue, "workflow_type": SESSION_WORKFLOW}
    for name, description in COUNTERS.items():
        counter = meter.create_counter(name, description)
        for agent in agents:
            for labels in _KNOWN_LABELS.get(name, [{}]):
                counter.add(0, {**own, "agent": agent, **labels})


class Metering:
    """What one session has added to the metrics.

    Args:
        session: The session; what its audit trail holds already was counted by the run before.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counted = self._lines
        self._turn, self._spent = session.state.turn, session.state.progress.usage.copy()
        self._rules: dict[AuditEvent, Callable[[AuditEntry], None]] = {
            "question_asked": lambda entry: self._add("questions_asked"),
            "answered": self._answered,
            "refused": lambda entry: self.refused(str(entry.detail.get("what")), str(entry.detail.get("code"))),
            "expired": lambda entry: self._add("questions_expired"),
            "question_withdrawn": lambda entry: self._add("questions_withdrawn"),
            "tool_ended": self._tool_ended,
            "turn_ended": self._turn_ended,
            "cycle_failed": self._cycle_failed,
        }

    @property
    def _lines(self) -> int:
        """Lines that the audit trail ever had."""
        return self._session.state.audit_dropped + len(self._session.state.audit)

    def measure(self) -> None:
        """Count what has happened since the last call; called in the very activation in which it happened."""
        fresh = self._lines - self._counted
        self._counted = self._lines
        for entry in self._session.state.audit[-fresh:] if fresh > 0 else []:
            if entry.event in self._rules:
                self._rules[entry.event](entry)
        self._tokens()

    def refused(self, what: str, code: str) -> None:
        """Count something that was refused; for updates, which leave no line in the trail.

        Args:
            what: The signal or update.
            code: One of `REFUSAL_CODES`.
        """
        what = what if what in _CHANNELS else "other"
        self._add("answers_refused", what=what, code=code if code in REFUSAL_CODES else "other")

    def _answered(self, entry: AuditEntry) -> None:
        pending, name = self._session.state.pending, entry.detail.get("question")
        question = next((q for q in pending.questions if q.id == name), None) if pending else None
        if question is None or question.answer is None:
            return
        decision = decision_of(question)
        self._add("answers", decision=decision)
        asked, given = (datetime.fromisoformat(at) for at in (question.asked_at, question.answer.at))
        meter = workflow.metric_meter().with_additional_attributes(
            {"agent": self._session.state.agent, "decision": decision}
        )
        histogram = meter.create_histogram_float(DECISION_SECONDS, "From a question to its answer", "s")
        histogram.record(max(0.0, (given - asked).total_seconds()))

    def _tool_ended(self, entry: AuditEntry) -> None:
        if entry.detail.get("outcome") == "unknown":
            self._add("calls_not_taken" if entry.detail.get("not_run") else "unknown_outcomes")

    def _turn_ended(self, entry: AuditEntry) -> None:
        reason = str(entry.detail.get("stop_reason"))
        self._add("turns", stop_reason=reason if reason in _STOP_REASONS else "other")

    def _cycle_failed(self, entry: AuditEntry) -> None:
        self._add("cycles_failed")
        unknown: Any = entry.detail.get("unknown") or []
        self._add("unknown_outcomes", len(unknown))

    def _tokens(self) -> None:
        """Count the tokens of the turn that were not counted yet."""
        turn, usage = self._session.state.turn, self._session.state.progress.usage
        if turn != self._turn or usage["totalTokens"] < self._spent["totalTokens"]:
            self._turn, self._spent = turn, no_usage()
        self._add("model_tokens", usage["inputTokens"] - self._spent["inputTokens"], kind="input")
        self._add("model_tokens", usage["outputTokens"] - self._spent["outputTokens"], kind="output")
        self._spent = usage.copy()

    def _add(self, name: str, count: int = 1, **labels: str) -> None:
        if count > 0:
            name = f"countersign_{name}_total"
            counter = workflow.metric_meter().create_counter(name, COUNTERS[name])
            counter.add(count, {"agent": self._session.state.agent, **labels})


def decision_of(question: Question) -> str:
    """What an answer says by its words: "approved", "denied", or "other", which only the asker understands."""
    response = question.answer.response if question.answer else None
    approve = question.answers.get("approve")
    if approve is not None and canonical_json(approve) == canonical_json(response):
        return "approved"
    if is_refusal(response, question.answers):
        return "denied"
    return "approved" if approves(response) else "other"
