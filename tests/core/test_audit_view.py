"""The audit trail as it is shown: nothing that is sent makes it disappear."""

from datetime import UTC, datetime

from countersign.agent_core.json_values import json_size
from countersign.agent_core.session import Session, SessionState, views
from countersign.agent_core.wire import AuditEntry, timestamp

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def session(*details):
    """A session with one audit line for each detail."""
    state = SessionState(session_id="s", agent="a")
    for detail in details:
        state.note(AuditEntry(at=timestamp(NOW), event="answered", cycle=1, detail=detail))
    return Session(state)


def test_the_reason_of_a_refusal_is_kept_short():
    """It may quote what came in."""
    one = session()
    one.refused(NOW, "respond", "malformed", "x" * 1_000_000)
    one.refused(NOW, "respond", "malformed", "a short reason")
    long, short = (line["detail"]["reason"] for line in views.audit(one))
    assert len(long) == 500 and long.endswith("…") and short == "a short reason"


def test_a_large_line_is_shortened_and_costs_no_other_line():
    """Only as many as must be; what names the question stays, and the shape of an answer."""
    large = {"question": "int-1", "answer": {"response": "y" * 600_000, "channel": "signal"}}
    lines = views.audit(session({"question": "int-0"}, large, {"question": "int-2", "text": "z" * 400_000}))
    assert [line["detail"]["question"] for line in lines] == ["int-0", "int-1", "int-2"]
    assert lines[1]["detail"]["shortened"] and lines[1]["detail"]["answer"]["channel"] == "signal"
    assert "shortened" not in lines[0]["detail"] and lines[2]["detail"]["text"] == "z" * 400_000
    assert json_size(lines) <= views.PAGE_BYTES


def test_any_trail_can_be_sent():
    """However many large lines, keys and characters: the latest ones are there, within what Temporal takes."""
    details = [{f"{key}" * 50: "\u2603" * 400 for key in range(30)} for _ in range(500)]
    lines = views.audit(session(*details))
    assert len(lines) > 100 and json_size(lines) < 1_900_000


def test_pages_hold_whole_lines():
    """From a given line on, about 500 KB, one at least; behind the last line there is nothing."""
    one = session(*({"number": number, "text": "x" * 200_000} for number in range(5)), {"text": "y" * 900_000})
    seen = []
    while page := views.audit(one, len(seen)):
        seen += page
        assert len(page) == 1 or json_size(page) <= views.PAGE_BYTES
    assert seen == [entry.model_dump(mode="json") for entry in one.state.audit]
