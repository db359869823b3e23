"""What a cycle leaves behind is made to fit, and never without saying what ran."""

import pytest

from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import assistant_text, history_faults, results_message, user_message
from countersign.agent_core.wire import MAX_VALUE_BYTES, AuditEntry, CycleOutcome, Pending, Question, StoredSegment
from countersign.workflows.fitting import fitting

ASKS = {
    "role": "assistant",
    "content": [{"toolUse": {"toolUseId": f"t{number}", "name": "read", "input": {}}} for number in range(3)],
}


def result(number, size):
    return {"toolUseId": f"t{number}", "status": "success", "content": [{"text": "z" * size}]}


def outcome(*sizes, **more):
    messages = [user_message("go"), ASKS, results_message(result(n, size) for n, size in enumerate(sizes))]
    return CycleOutcome(stop_reason="tool_use", last_cycle=1, messages=messages, **more)


def texts(messages):
    return [block["toolResult"]["content"][0]["text"][:12] for block in messages[-1]["content"]]


def test_what_fits_stays_as_it_is():
    """Nothing is looked at twice."""
    small = outcome(10, 10, 10)
    assert fitting(small) is small


def test_the_largest_results_make_room():
    """The others stay, and the largest says that its tool ran."""
    found = fitting(outcome(1_000_000, 10, 700_000))
    assert found.stop_reason == "tool_use"
    assert texts(found.messages) == ["The tool ran", "zzzzzzzzzz", "z" * 12]


def test_copies_in_the_audit_trail_make_room_before_results_do():
    """The conversation has the inputs too; what a tool has returned stands nowhere else."""
    lines = [
        AuditEntry(at="2030-01-01T00:00:00+00:00", event="tool_started", detail={"tool": "read", "input": "x" * 1_900})
        for _ in range(400)
    ]
    found = fitting(outcome(600_000, 10, 300_000, audit=lines))
    assert texts(found.messages) == ["z" * 12, "zzzzzzzzzz", "z" * 12]
    assert {line.detail["input_bytes"] for line in found.audit} == {1_902}


def test_what_was_given_is_not_changed():
    """The agent that runs on still has the results."""
    large = outcome(1_000_000, 10, 700_000)
    fitting(large)
    assert texts(large.messages)[0] == "z" * 12


@pytest.mark.parametrize("kind", ["messages", "conversation", "pieces"])
def test_a_state_that_is_too_large_fails_the_turn_and_keeps_what_ran(kind):
    """State and memories are those from before; the batch that waited is complete."""
    pending = Pending(
        origin_cycle=1, message=ASKS, results={1: result(1, 10)}, questions=[Question(id="q", name="n", digest="d")]
    )
    given = outcome(0, 0, 0, agent_state={"big": "x" * MAX_VALUE_BYTES}, pending=pending)
    opening = given.messages[:2]
    changes = {"messages": opening} if kind == "messages" else {"messages": [], kind: opening}
    if kind == "pieces":
        changes["pieces"] = [StoredSegment(messages=4, reference="r"), opening]
    found = fitting(given.model_copy(update=changes))
    unstored = [piece for piece in found.pieces or [] if not isinstance(piece, StoredSegment)]
    left = found.messages or found.conversation or [message for piece in unstored for message in piece]
    assert (found.stop_reason, found.error.type, found.as_before) == ("failed", "PayloadTooLargeError", True)
    assert [text[:7] for text in texts(left)] == ["Not run", "zzzzzzz", "Not run"]
    assert history_faults([*left, assistant_text("next")]) == []
    assert json_size(found.model_dump(mode="json")) < MAX_VALUE_BYTES
