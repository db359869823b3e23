"""What a failed cycle had done, put together again from its history."""

from dataclasses import dataclass, field

from countersign.agent_core.calls_in_doubt import doubt
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, Usage, add_usage, no_usage, results_message, tool_uses
from countersign.agent_core.session.state import SessionState
from countersign.agent_core.unknown_outcomes import UNKNOWN_OUTCOME_QUESTION
from countersign.agent_core.wire import CycleInput, Pending, RecoveredCycle, Recovery


@dataclass
class Rebuilt:
    """The part of a failed cycle that counts.

    Attributes:
        messages: To add to the conversation; if the last one asks for tools, `pending` is set.
        pending: The batch to go on with.
        model_calls: Model calls that were finished.
        usage: Their tokens.
        latency_ms: Time spent in them.
        kept: Finished tool results that were kept.
        unknown: Calls that may have run, and why.
        state_set: What finished tools wrote to `agent.state`.
        state_deleted: What they deleted there.
    """

    messages: list[Message] = field(default_factory=list)
    pending: Pending | None = None
    model_calls: int = 0
    usage: Usage = field(default_factory=no_usage)
    latency_ms: int = 0
    kept: int = 0
    unknown: dict[int, str] = field(default_factory=dict)
    state_set: JsonObject = field(default_factory=dict)
    state_deleted: set[str] = field(default_factory=set)


def rebuild(recovery: Recovery, given: CycleInput) -> Rebuilt:
    """Rebuild messages and the unfinished batch of a failed cycle.

    Args:
        recovery: What its history says, cycle by cycle.
        given: What it was started with.
    """
    rebuilt = Rebuilt(messages=[] if given.pending else list(given.prompt))
    cycles = list(recovery.cycles)
    if given.pending is not None:
        resumed = next((cycle for cycle in cycles if cycle.cycle == given.cycle), None)
        later = [cycle for cycle in cycles if cycle.cycle != given.cycle]
        _take(rebuilt, given.pending.model_copy(deep=True), resumed, later)
        cycles = later if rebuilt.pending is None else []
    for number, cycle in enumerate(cycles):
        if cycle.response is None:
            continue
        message = cycle.response.message
        rebuilt.messages.append(message)
        rebuilt.model_calls += 1
        rebuilt.usage = add_usage(rebuilt.usage, cycle.response.usage)
        rebuilt.latency_ms += cycle.response.latency_ms
        if tool_uses(message):
            _take(rebuilt, Pending(origin_cycle=cycle.cycle, message=message), cycle, cycles[number + 1 :])
        elif cycles[number + 1 :]:
            rebuilt.messages.extend(cycles[number + 1].opened_with)  # the model was asked for its structured output
        if rebuilt.pending is not None:
            break
    return rebuilt


def _take(rebuilt: Rebuilt, pending: Pending, cycle: RecoveredCycle | None, later: list[RecoveredCycle]) -> None:
    """Hold a batch against what its calls did; it stays pending if one has no result.

    If a later cycle has called the model, the batch was done: its results, those of refused calls
    and after hooks included, are what the model was given.
    """
    for call in cycle.calls if cycle else []:
        if call.status == "finished" and call.outcome is not None:
            rebuilt.state_set.update(call.outcome.state_set)
            rebuilt.state_deleted.difference_update(call.outcome.state_set)
            for key in call.outcome.state_deleted:
                rebuilt.state_set.pop(key, None)
                rebuilt.state_deleted.add(key)
    settled = later[0].opened_with if later else []
    if any("toolResult" in block for message in settled for block in message["content"]):
        rebuilt.messages.extend(settled)
        rebuilt.kept += len(cycle.calls) if cycle else 0
        return
    for call in cycle.calls if cycle else []:
        if call.status == "finished" and call.outcome is not None and call.outcome.result is not None:
            pending.recovered[call.index] = call  # the next cycle's hooks and handlers hear of it first
            rebuilt.kept += 1
        elif call.status == "unknown" or (call.outcome is not None and call.outcome.kind == "unknown"):
            doubt(pending, call.index, call.detail or "its cycle failed while it ran", call=call.call)
            rebuilt.unknown[call.index] = pending.unknown[call.index]
    uses = tool_uses(pending.message)
    if all(index in pending.results for index in range(len(uses))):
        rebuilt.messages.append(results_message(pending.results[index] for index in range(len(uses))))
    else:
        rebuilt.pending = pending


def adopt(rebuilt: Rebuilt, state: SessionState) -> None:
    """Take over what counts of a failed cycle. Questions and answers of the same batch stay the session's."""
    state.extend(rebuilt.messages)
    state.agent_state = {**state.agent_state, **rebuilt.state_set}
    for key in rebuilt.state_deleted:
        state.agent_state.pop(key, None)
    state.model_calls += rebuilt.model_calls
    state.progress.cycles += rebuilt.model_calls
    state.progress.usage = add_usage(state.progress.usage, rebuilt.usage)
    state.progress.latency_ms += rebuilt.latency_ms
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
