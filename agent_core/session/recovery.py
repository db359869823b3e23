"""What a failed cycle had done, put together again from its history."""

from dataclasses import dataclass, field
from itertools import zip_longest

from countersign.agent_core.calls_in_doubt import doubt
from countersign.agent_core.messages import Message, Usage, add_usage, no_usage, tool_uses
from countersign.agent_core.session.state import SessionState
from countersign.agent_core.state import with_writes
from countersign.agent_core.unknown_outcomes import UNKNOWN_OUTCOME_QUESTION
from countersign.agent_core.wire import CycleInput, ModelResponse, Pending, RecoveredCycle, Recovery, ToolOutcome


@dataclass
class Rebuilt:
    """The part of a failed cycle that counts.

    Attributes:
        messages: To add to the conversation; if the last one asks for tools, `pending` is set.
        behind: What stands behind the message of the batch that was resumed, if that batch is done.
        pending: The batch to go on with.
        response: The last answer of the model, if none of its calls was begun: hooks hear it (again) in the next cycle.
        cycles: Answers that are in `messages`.
        forced: Whether the model was asked for its structured output.
        model_calls: Model calls that were finished.
        usage: Their tokens.
        latency_ms: Time spent in them.
        kept: Finished tool results that were kept.
        unknown: Calls that may have run, and why.
        outcomes: Of its finished calls: their tools may have written to `agent.state`.
    """

    messages: list[Message] = field(default_factory=list)
    behind: list[Message] = field(default_factory=list)
    pending: Pending | None = None
    response: ModelResponse | None = None
    cycles: int = 0
    forced: bool = False
    model_calls: int = 0
    usage: Usage = field(default_factory=no_usage)
    latency_ms: int = 0
    kept: int = 0
    unknown: dict[int, str] = field(default_factory=dict)
    outcomes: list[ToolOutcome] = field(default_factory=list)

    @property
    def begun(self) -> bool:
        """True if there is anything of a model to go on from."""
        return self.cycles > 0 or self.response is not None


def rebuild(recovery: Recovery, given: CycleInput) -> Rebuilt:
    """Rebuild messages and the unfinished batch of a failed cycle.

    Args:
        recovery: What its history says, cycle by cycle.
        given: What it was started with.
    """
    cycles, rebuilt = list(recovery.cycles), Rebuilt()
    if given.pending is not None:
        resumed = next((cycle for cycle in cycles if cycle.cycle == given.cycle), None)
        cycles = [cycle for cycle in cycles if cycle.cycle != given.cycle]
        rebuilt.behind = _take(rebuilt, given.pending.model_copy(deep=True), resumed, cycles)
        if rebuilt.pending is not None:
            return rebuilt
    elif given.response is not None and not any(cycle.cycle == given.cycle for cycle in cycles):
        cycles.insert(0, RecoveredCycle(cycle=given.cycle))  # it called no model, and got no further
    rebuilt.messages.extend(next((cycle.prompt for cycle in cycles if cycle.prompt is not None), given.prompt))
    for number, cycle in enumerate(cycles):
        later, response = cycles[number + 1 :], cycle.response
        if response is not None:
            rebuilt.model_calls += 1
            rebuilt.usage = add_usage(rebuilt.usage, response.usage)
            rebuilt.latency_ms += response.latency_ms
        elif cycle.cycle == given.cycle:
            response = given.response  # counted by the recovery that handed it on
        message = cycle.message or (response.message if response else None)
        if message is None:
            continue
        if not cycle.calls and not later:
            rebuilt.response = response
            break
        rebuilt.messages.append(message)
        rebuilt.cycles += 1
        if tool_uses(message):
            rebuilt.messages.extend(_take(rebuilt, Pending(origin_cycle=cycle.cycle, message=message), cycle, later))
        elif later:
            rebuilt.messages.extend(later[0].opened_with)  # the model was asked for its structured output
            rebuilt.forced = True
        if rebuilt.pending is not None:
            break
    return rebuilt


def _take(
    rebuilt: Rebuilt, pending: Pending, cycle: RecoveredCycle | None, later: list[RecoveredCycle]
) -> list[Message]:
    """Hold a batch against what its calls did; it stays pending unless a later cycle has called the model.

    Returns:
        What stands behind its message if it is done: its results, those of refused calls and after hooks
        included, as the model was given them.
    """
    calls, earlier = (cycle.calls, cycle.earlier) if cycle else ([], [])
    runs: dict[int, list[ToolOutcome]] = {}
    for call in [*earlier, *calls]:
        if call.status == "finished" and call.outcome is not None:
            runs.setdefault(call.index, []).append(call.outcome)
    # What hooks wanted to run again ran when all others had: first runs first, each time in the order of the calls.
    for wave in zip_longest(*(runs[index] for index in sorted(runs))):
        rebuilt.outcomes += [outcome for outcome in wave if outcome is not None]
    settled = later[0].opened_with if later else []
    if any("toolResult" in block for message in settled for block in message["content"]):
        rebuilt.kept += len(calls)
        return settled
    for call in earlier:
        pending.executions[call.index] = pending.executions.get(call.index, 0) + 1
    for call in calls:
        if call.status == "finished" and call.outcome is not None and call.outcome.result is not None:
            pending.recovered[call.index] = call  # the next cycle's hooks and handlers hear of it first
            rebuilt.kept += 1
        elif call.status == "unknown" or (call.outcome is not None and call.outcome.kind == "unknown"):
            doubt(pending, call.index, call.detail or "its cycle failed while it ran", call=call.call)
            rebuilt.unknown[call.index] = pending.unknown[call.index]
    rebuilt.pending = pending
    return []


def adopt(rebuilt: Rebuilt, state: SessionState) -> None:
    """Take over what counts of a failed cycle. Questions and answers of the same batch stay the session's."""
    if rebuilt.behind and state.pending is not None:
        state.put_behind(state.pending.message, rebuilt.behind)
    state.extend(rebuilt.messages)
    for outcome in rebuilt.outcomes:
        state.agent_state = with_writes(state.agent_state, outcome.state_set, outcome.state_deleted)
    state.model_calls += rebuilt.model_calls
    state.progress.cycles += rebuilt.cycles
    state.progress.forced = state.progress.forced or rebuilt.forced
    state.progress.usage = add_usage(state.progress.usage, rebuilt.usage)
    state.progress.latency_ms += rebuilt.latency_ms
    if rebuilt.response is not None:
        counted = {"usage": no_usage(), "latency_ms": 0, "stored": []}
        state.response = rebuilt.response.model_copy(update=counted)
    before, state.pending = state.pending, rebuilt.pending
    if state.pending is None:
        return
    if before is not None and before.origin_cycle == state.pending.origin_cycle:
        state.pending.questions = before.questions
    for question in state.pending.questions:
        # A "retry" that was lost as well is used up.
        used = question.name == UNKNOWN_OUTCOME_QUESTION and question.index in rebuilt.unknown
        if used and question.scope == "core" and question.status == "answered":
            question.status = "settled"
    state.resume_due = True


def doubt_lost(pending: Pending, given: Pending, reason: str) -> list[int]:
    """Mark the calls that a lost cycle may have run: all without a result whose question was not open then.

    Args:
        pending: The session's batch; changed in place.
        given: The batch as the cycle got it.
        reason: Why nothing is known.

    Returns:
        The places of those calls.
    """
    asked = [question for question in given.questions if question.status == "open"]
    waiting = {question.index for question in asked}
    found = []
    for index in range(len(tool_uses(pending.message))):
        if index not in pending.results and index not in waiting and None not in waiting:
            doubt(pending, index, reason)
            found.append(index)
    return found
