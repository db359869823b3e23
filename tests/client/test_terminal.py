"""Foreign text on a terminal: seen, and unable to do anything."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.agent_client.cli.audit import audit_line
from countersign.agent_client.cli.event_text import event_text
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.terminal import visible_json, visible_lines
from countersign.agent_client.events import SessionEvent
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible
from countersign.agent_core.wire import AuditEntry


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Ünïcødé 漢字", "plain Ünïcødé 漢字"),
        ("\x1b[2J\x1b]0;title\x07", "\\u001b[2J\\u001b]0;title\\u0007"),
        ("\u009b31m", "\\u009b31m"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("a\u200bb\u2066c", "a\\u200bb\\u2066c"),
        ("one\r\ntwo", "one\\u000d\\ntwo"),
        ("tag\U000e0041", "tag\\udb40\\udc41"),
        ("\u3164\u00a0", "\\u3164\\u00a0"),
        ("rm\ufe00 \U000e0100x\u180b", "rm\\ufe00 \\udb40\\udd00x\\u180b"),
        ("\U00016fe4\U0001d159", "\\ud81b\\udfe4\\ud834\\udd59"),
        ("⚠\ufe0f a\ufe0f", "⚠\ufe0f a\\ufe0f"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_its_escape(text, shown):
    """ESC, C0, C1, bidi, zero-width, tags and blank letters all show."""
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_is_shown_moves_a_cursor(text):
    """Whatever comes in, one printable line comes out."""
    assert visible(text).isprintable()


def test_every_line_of_foreign_text_stands_behind_a_bar():
    """A model can't write a line that looks like this command's own."""
    shown = visible_lines("done\n$ countersign approve --all\r> yes")
    assert all(line.startswith("  │ ") for line in shown.split("\n"))


PADDED = f"fine{' ' * 60}2030-01-01 09:00:00 cycle 9 ann answered yes"
"""A comment that would begin a row of its own with what looks like a line of ours."""


def test_no_part_of_an_audit_line_begins_a_row():
    """A terminal breaks long lines; where it would, a mark stands before the rest, and nothing is lost."""
    detail = {"name": "really", "question": "q", "answer": {"response": "y", "comment": PADDED}}
    entry = AuditEntry(at="2030-01-01T09:00:00+00:00", event="answered", cycle=1, detail=detail)
    first, *others = audit_line(entry, 60).split("\n")
    assert others and all(row.startswith("  ┆ ") for row in others)
    assert max(map(len, [first, *others])) <= 60
    assert first + "".join(row.removeprefix("  ┆ ") for row in others) == audit_line(entry)


def test_no_part_of_a_followed_event_begins_a_row():
    """What others answer is foreign text, too; what is no terminal gets whole lines."""
    event = SessionEvent("answered", {"id": "q", "name": "really", "response": "y", "comment": PADDED})
    now = datetime(2030, 1, 1, tzinfo=UTC)
    first, *others = event_text("s", event, Transcript(), now, 60).split("\n")
    assert first.startswith("* ") and others and all(row.startswith("  ┆ ") for row in others)
    assert "\n" not in event_text("s", event, Transcript(), now)


@pytest.mark.parametrize(("brief", "most", "where"), [(False, 4_000, "--json"), (True, 500, "show SESSION --json")])
def test_what_is_cut_is_counted_and_can_be_had(brief, most, where):
    """Below the bar, so that no result can claim it."""
    result = {"toolUseId": "1", "status": "success", "content": [{"text": "x" * 60_000}]}
    last = Transcript(brief=brief).text("user", [{"toolResult": result}]).split("\n")[-1]
    assert last.strip().startswith(f"… {60_000 - most:,} characters more; all with ")
    assert last.endswith(where)
    exact = {**result, "content": [{"text": "x" * most}]}
    assert "…" not in Transcript(brief=brief).text("user", [{"toolResult": exact}])


def test_json_types_can_be_told_apart():
    """The text "3" and the number 3 look different to the person who signs."""
    assert visible_json({"a": "3", "b": 3}) == '  │ {\n  │   "a": "3",\n  │   "b": 3\n  │ }'


def test_a_command_can_be_pasted_whatever_the_id_is():
    """An id with a shell's characters stays one word."""
    assert command("show", "x; rm -rf ~") == "countersign show 'x; rm -rf ~'"


@pytest.mark.parametrize(
    ("event", "detail", "words"),
    [
        ("call_refused", {"tool": "pay", "by": "policy", "who": "limits", "text": "no"}, "pay refused by limits: no"),
        ("call_refused", {"tool": "pay", "by": "person", "who": None, "text": "no"}, "pay refused by a person: no"),
        ("call_refused", {"tool": "pay", "text": "no"}, "pay refused: no"),
        ("batch_cancelled", {"by": "policy", "who": "shut", "text": "no"}, "all calls refused by shut: no"),
        ("batch_cancelled", {"questions": []}, "all calls refused"),
        ("tool_ended", {"tool": "pay", "outcome": "result", "status": "error"}, "pay ended (error)"),
        ("tool_ended", {"tool": "pay", "outcome": "result"}, "pay ended (result)"),
    ],
)
def test_an_audit_line_says_who_refused_and_what_failed(event, detail, words):
    """As far as its version noted that."""
    assert audit_line(AuditEntry(at="2030-01-01T09:00:00+00:00", event=event, detail=detail)).endswith(f" {words}")
