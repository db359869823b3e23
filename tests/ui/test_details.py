"""What goes into the Temporal UI's Markdown, without a browser."""

from datetime import UTC, datetime
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from countersign.agent_core.markdown import WRAP_CHARS, code, code_block, plain
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.visible import visible
from countersign.agent_core.wire import Pending, Question, ShownCall
from countersign.workflows.details import session_details

TEXTS = st.text(alphabet="`*_[]()<>!&#|~\\ \n\t\u202e\u2028abc-=>1.", max_size=120) | st.text(max_size=60)


def session(*questions: Question) -> Session:
    """A session that waits for these."""
    pending = Pending(origin_cycle=1, message={"role": "assistant", "content": []}, questions=list(questions))
    return Session(SessionState(session_id="tidy-1", agent="janitor", status="waiting", pending=pending))


def question(number: int, call_input: dict, **more: object) -> Question:
    """A question about a call with this input."""
    return Question(
        id=f"int-1-{number}-abc",
        name="approval",
        calls=[ShownCall(index=0, tool="delete_files", tool_use_id="call-1", input=call_input)],
        digest="0123456789abcdef" * 4,
        asked_at=datetime(2026, 1, 2, tzinfo=UTC).isoformat(),
        **more,
    )


@given(TEXTS)
def test_a_code_block_holds_any_text(text):
    """Whatever the text, Markdown reads one block of code and nothing beside it."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse("\n".join(code_block(text)))
    assert [token.type for token in tokens] == ["fence"]


@given(TEXTS)
def test_a_code_span_holds_any_text(text):
    """Whatever the text, Markdown reads one span of code with that text."""
    [_, inline, _] = MarkdownIt().parse(f"x {code(text)} x")
    before, span, after = inline.children or []
    assert (before.content, span.type, after.content) == ("x ", "code_inline", " x")
    assert span.content.strip() == visible(text).strip()


@given(TEXTS)
def test_a_code_block_is_never_cut_by_the_page(text):
    """Its lines fit the UI's panel, and nothing is lost where they go on."""
    lines = code_block(text)[1:-1]
    assert max(map(len, lines)) <= WRAP_CHARS
    if "↪" not in text:
        assert "".join(line.removeprefix("↪ ") for line in lines) == "".join(map(visible, text.split("\n")))


@given(TEXTS)
def test_a_summary_marks_nothing_up(text):
    """A summary is read as plain text: no link, no image, no HTML, no emphasis."""
    [_, inline, _] = MarkdownIt("gfm-like", {"linkify": False}).parse(f"cycle {plain(text).replace('_', '')} x")
    assert {child.type for child in inline.children or []} == {"text"}


def test_a_question_that_is_shown_whole_comes_with_a_bound_command():
    """The command to approve names the digest of what is shown."""
    shown = session_details(session(question(0, {"paths": ["/tmp/a"]})), "default")
    assert '"/tmp/a"' in shown
    assert "`countersign approve tidy-1 int-1-0-abc --digest 0123456789abcdef`" in shown


def test_a_question_that_is_asked_again_says_why():
    """Whoever approved it already sees what has changed since."""
    why = "the reason changed since it was approved by ana"
    assert why in session_details(session(question(1, {"x": 1}, fault=why)), "default")
    assert "asked again" not in session_details(session(question(1, {"x": 1})), "default")


def test_a_question_with_answers_of_its_own_comes_with_these():
    """Where "approve" means nothing, the commands send what the asker understands."""
    shown = session_details(session(question(0, {}, answers={"retry": "retry", "skip": "skip it"})), "default")
    assert "`countersign respond tidy-1 int-1-0-abc retry --digest 0123456789abcdef`" in shown
    assert "`countersign respond tidy-1 int-1-0-abc 'skip it' --digest 0123456789abcdef`" in shown


def test_an_unknown_outcome_says_that_the_call_may_have_run_and_what_answers_do():
    """With the command that records a result."""
    answers = {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}}
    asked = question(0, {}, answers=answers, reason={"note": "The call may have run. Nobody knows."})
    shown = session_details(session(asked.model_copy(update={"name": "unknown-outcome"})), "default")
    assert "May have run `delete_files` with" in shown and "Will run" not in shown
    assert "- it did not run: run it: `countersign respond tidy-1 int-1-0-abc retry --digest" in shown
    assert """`countersign respond tidy-1 int-1-0-abc '{"result": "..."}' --json-value --digest""" in shown


def test_what_does_not_fit_can_not_be_approved_from_the_page():
    """Where a part is cut, the only command is the one that shows all of it."""
    shown = session_details(session(question(0, {"text": "x" * 5_000})), "payments")
    assert "There is more than fits here" in shown
    assert "countersign approve" not in shown
    assert "`countersign interrupts tidy-1 --namespace payments`" in shown


def test_many_large_questions_stay_small():
    """The details fit into the address that the UI makes of them."""
    questions = [question(number, {"text": '"<>' * 400}) for number in range(50)]
    shown = session_details(session(*questions), "default")
    assert "42 more are not shown here" in shown
    assert len(quote(shown)) < 8_000
