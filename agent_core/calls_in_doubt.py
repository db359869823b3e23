"""Calls that may have run, or have: what a batch keeps of them, and what the model is told if it is given up."""

from countersign.agent_core.messages import ToolResult, error_result, not_run, tool_uses
from countersign.agent_core.wire import Pending, RecoveredCall, RecoveredCycle, ShownCall, ToolCall


def bare(call: ToolCall) -> ToolCall:
    """A call as it is kept: what was issued, without what surrounds it."""
    return call.model_copy(update={"agent_state": {}, "invocation_state": {}, "answers": {}, "message": None})


def attempted(cycle: RecoveredCycle, calls: list[RecoveredCall]) -> None:
    """Keep attempts of calls in the place of earlier ones, of which those that ran to their end still count."""
    indexes = {call.index for call in calls}
    replaced = [known for known in cycle.calls if known.index in indexes]
    ran = [
        RecoveredCall(index=known.index, status="finished", outcome=known.outcome.model_copy(update={"result": None}))
        for known in replaced if known.status == "finished" and known.outcome is not None
    ]  # fmt: skip
    cycle.earlier = [*cycle.earlier, *ran]
    for call in calls:
        _leave_what_stands(cycle.earlier, call)
    cycle.calls = [*(known for known in cycle.calls if known.index not in indexes), *calls]


def _leave_what_stands(earlier: list[RecoveredCall], call: RecoveredCall) -> None:
    """Take from a call's earlier runs what a later one wrote to `agent.state` again: only the last value counts."""
    runs = [known.outcome for known in [*earlier, call] if known.index == call.index and known.outcome is not None]
    over: set[str] = set()
    for outcome in reversed(runs):
        written, deleted = set(outcome.state_set), set(outcome.state_deleted)
        if outcome is not call.outcome:
            outcome.state_set = {key: value for key, value in outcome.state_set.items() if key not in over}
            outcome.state_deleted = [key for key in outcome.state_deleted if key not in over]
        over |= written | deleted


def doubt(pending: Pending, index: int, detail: str, *, call: ToolCall | None = None, not_run: bool = False) -> None:
    """Keep a call for a person's word.

    Args:
        pending: Its batch.
        index: Its place there.
        detail: What is known.
        call: How it was issued, if that is known now.
        not_run: True if surely nobody has run it; else it may have run.
    """
    issued = pending.issued.get(index)
    if call is not None:
        issued = ShownCall(index=index, tool_use_id=call.tool_use_id, tool=call.tool, input=call.input)
    resolve(pending, index)
    pending.unknown[index] = detail
    if issued is not None:
        pending.issued[index] = issued
    if not_run:
        pending.not_run.append(index)


def resolve(pending: Pending, index: int) -> None:
    """A call is in doubt no more."""
    pending.unknown.pop(index, None)
    pending.issued.pop(index, None)
    pending.not_run = [one for one in pending.not_run if one != index]


def doubt_words(pending: Pending, index: int) -> str | None:
    """What the model is told of a call that may have run, or has without anybody having seen its result; else None."""
    if index in pending.recovered:
        return "This call has run. Its result is withheld: the turn ended before hooks and handlers could see it."
    detail = pending.unknown.get(index)
    if detail is None:
        return None
    if index in pending.not_run:
        return f"This call has not run: {detail}"
    return f"This call may have run; its outcome is unknown: {detail}"


def with_doubt(pending: Pending, index: int, result: ToolResult) -> ToolResult:
    """The result of a call that does not run now, with what is known of it otherwise."""
    words = doubt_words(pending, index)
    return {**result, "content": [*result["content"], {"text": words}]} if words else result


def given_up(pending: Pending, index: int, text: str) -> ToolResult:
    """The result of a call that nothing more is done about: its own, what is known of it, or `text` as an error."""
    use_id, words = tool_uses(pending.message)[index]["toolUseId"], doubt_words(pending, index)
    if index in pending.results:
        return pending.results[index]
    return error_result(use_id, words) if words else not_run(use_id, text, pending.executions.get(index, 0))


def all_given_up(pending: Pending, text: str) -> list[ToolResult]:
    """The same for each call of a batch."""
    return [given_up(pending, index, text) for index in range(len(tool_uses(pending.message)))]
