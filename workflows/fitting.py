"""What a cycle leaves behind, made to fit what can be sent. That a call has run is never left out."""

from collections.abc import Iterator

from countersign.agent_core.audit_values import without_copies
from countersign.agent_core.calls_in_doubt import all_given_up
from countersign.agent_core.errors import PayloadTooLargeError
from countersign.agent_core.json_values import json_size
from countersign.agent_core.large_results import shorten
from countersign.agent_core.messages import Message, ToolResult, results_message, unanswered
from countersign.agent_core.wire import MAX_VALUE_BYTES, CycleOutcome, ErrorInfo, StoredSegment

AUDIT_LINES = 20


def fitting(outcome: CycleOutcome) -> CycleOutcome:
    """The outcome as it can be sent.

    If it is too large, its audit trail goes without copies, then its largest results are replaced by a note that the
    tool ran. If that does not help, the turn fails: state and memories stay as they were before it, the conversation
    says what ran.
    """
    size = _size(outcome)
    if size <= MAX_VALUE_BYTES:
        return outcome
    outcome = outcome.model_copy(deep=True)
    outcome.audit = [without_copies(entry) for entry in outcome.audit]
    size = _size(outcome)
    if size <= MAX_VALUE_BYTES:
        return outcome
    shorten(_results(outcome), size - MAX_VALUE_BYTES, "all else that the cycle leaves behind")
    size = _size(outcome)
    return outcome if size <= MAX_VALUE_BYTES else _failed(outcome, size)


def _size(outcome: CycleOutcome) -> int:
    return json_size(outcome.model_dump(mode="json"))


def _results(outcome: CycleOutcome) -> Iterator[ToolResult]:
    for message in _messages(outcome):
        for block in message["content"]:
            if "toolResult" in block:
                yield block["toolResult"]
    if outcome.pending is not None:
        yield from outcome.pending.results.values()


def _messages(outcome: CycleOutcome) -> Iterator[Message]:
    yield from outcome.messages
    yield from outcome.conversation or []
    for piece in outcome.pieces or []:
        if not isinstance(piece, StoredSegment):
            yield from piece


def _failed(outcome: CycleOutcome, size: int) -> CycleOutcome:
    """The end of a turn whose outcome can't be sent, with its messages and without everything else."""
    error = PayloadTooLargeError("what the cycle leaves behind (messages, questions and state)", size, MAX_VALUE_BYTES)
    if outcome.pending is not None:
        results = results_message(all_given_up(outcome.pending, f"Not run: {error}"))
        _put_behind(outcome, outcome.pending.message, results)
    return CycleOutcome(
        stop_reason="failed",
        last_cycle=outcome.last_cycle,
        messages=outcome.messages,
        conversation=outcome.conversation,
        pieces=outcome.pieces,
        kept=outcome.kept,
        gone=outcome.gone,
        as_before=True,
        progress=outcome.progress,
        model_calls=outcome.model_calls,
        error=ErrorInfo(type=type(error).__name__, message=str(error)),
        audit=outcome.audit[-AUDIT_LINES:],
    )


def _put_behind(outcome: CycleOutcome, asking: Message, results: Message) -> None:
    """Put results right behind the message that asks for them, whatever hooks have put there."""
    one = outcome.messages if outcome.conversation is None else outcome.conversation
    for piece in [one] if outcome.pieces is None else outcome.pieces:
        if not isinstance(piece, StoredSegment) and (place := unanswered(piece, asking)) is not None:
            piece.insert(place, results)
            return
    if outcome.pieces is not None:  # it stands in a piece that the session has
        outcome.pieces.append([results])
    elif outcome.conversation is None:  # it stands in the conversation before
        outcome.messages.insert(0, results)
