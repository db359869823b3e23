"""What a failed cycle had done, put together again from its history."""

from dataclasses import dataclass, field

from countersign.agent_core.messages import Message, results_message, tool_uses
from countersign.agent_core.wire import CycleInput, Pending, RecoveredCycle, Recovery


@dataclass
class Rebuilt:
    """The part of a failed cycle that counts.

    Attributes:
        messages: To add to the conversation; if the last one asks for tools, `pending` is set.
        pending: The batch to go on with.
        model_calls: Model calls that were finished.
        kept: Finished tool results that were kept.
        unknown: Calls that may have run, and why.
    """

    messages: list[Message] = field(default_factory=list)
    pending: Pending | None = None
    model_calls: int = 0
    kept: int = 0
    unknown: dict[int, str] = field(default_factory=dict)


def rebuild(recovery: Recovery, given: CycleInput) -> Rebuilt:
    """Rebuild messages and the unfinished batch of a failed cycle.

    Args:
        recovery: What its history says, cycle by cycle.
        given: What it was started with.
    """
    rebuilt = Rebuilt(messages=[] if given.pending else list(given.prompt))
    cycles = list(recovery.cycles)
    if given.pending is not None:
        resumed = next((cycle for cycle in cycles if cycle.response is None), None)
        _take(rebuilt, given.pending.model_copy(deep=True), resumed)
        cycles = [cycle for cycle in cycles if cycle.response is not None] if rebuilt.pending is None else []
    for cycle in cycles:
        if cycle.response is None:
            continue
        message = cycle.response.message
        rebuilt.messages.append(message)
        rebuilt.model_calls += 1
        if tool_uses(message):
            _take(rebuilt, Pending(origin_cycle=cycle.cycle, message=message), cycle)
        if rebuilt.pending is not None:
            break
    return rebuilt


def _take(rebuilt: Rebuilt, pending: Pending, cycle: RecoveredCycle | None) -> None:
    """Hold a batch against what its calls did; it stays pending if one has no result."""
    for call in cycle.calls if cycle else []:
        if call.status == "finished" and call.outcome is not None and call.outcome.result is not None:
            pending.results[call.index] = call.outcome.result
            pending.executions[call.index] = pending.executions.get(call.index, 0) + 1
            rebuilt.kept += 1
        elif call.status == "unknown" or (call.outcome is not None and call.outcome.kind == "unknown"):
            pending.unknown[call.index] = call.detail or "its cycle failed while it ran"
            rebuilt.unknown[call.index] = pending.unknown[call.index]
    uses = tool_uses(pending.message)
    if all(index in pending.results for index in range(len(uses))):
        rebuilt.messages.append(results_message(pending.results[index] for index in range(len(uses))))
    else:
        rebuilt.pending = pending
