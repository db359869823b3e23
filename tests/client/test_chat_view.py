"""What a typed line means, and how a conversation looks: nothing from outside can fake a line."""

from datetime import UTC, datetime

import pytest

from countersign.agent_client.cli.cards import inline_card, question_card
from countersign.agent_client.cli.chat_view import meaning, offer, turn_end
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.terminal import visible_lines
from countersign.agent_core.wire import Question, ShownCall

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def question(**fields):
    """A question about one call."""
    calls = [ShownCall(index=0, tool_use_id="t", tool="delete", input={"path": "x" * 100 + "\u202e"})]
    return Question(**{"id": "q", "name": "really", "digest": "a" * 64, "calls": calls, **fields})


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("y", ({"go": True}, "approve")),
        (" YES ", ({"go": True}, "approve")),
        ("n", (False, "deny")),
        ("No", (False, "deny")),
        ("approve", ({"go": True}, "approve")),
        ("no: keep it", ("no: keep it", "")),
        ("yes please", ("yes please", "")),
        ("t", ("t", "")),
        ('/json {"go": 1}', ({"go": 1}, "")),
        ("/json null", (None, "")),
        ("  ", None),
    ],
)
def test_a_line_means_the_questions_own_answer_or_its_words(typed, expected):
    """y and n send what the asker understands; everything else goes out as it is; Enter alone is no answer."""
    assert meaning(question(answers={"approve": {"go": True}, "deny": False}), typed) == expected


def test_trust_and_other_answers_are_taken_where_they_are_offered():
    """By t, or by the answer's own name."""
    asked = question(answers={"approve": "y", "deny": "n", "trust": "t", "skip": 0})
    assert (meaning(asked, "t"), meaning(asked, "skip")) == (("t", "trust"), (0, "skip"))
    assert offer(asked).startswith("y approves, n denies, t approves this tool from now on, skip, ")


def test_an_answer_is_taken_by_its_name_in_capitals_or_not():
    """What is offered is what is sent; of two names that differ in that only, the one that was typed."""
    asked = question(answers={"Escalate": "esc-7", "escalate it": 1, "Escalate It": 2})
    assert (meaning(asked, "Escalate"), meaning(asked, "escalate")) == (("esc-7", "Escalate"),) * 2
    assert meaning(asked, "Escalate It") == (2, "Escalate It")
    assert meaning(question(answers={"yes": "go", "no": "halt"}), "Yes") == ("go", "yes")


@pytest.mark.parametrize("typed", ["NaN", "-Infinity", "1e999", "[" * 3_000, "[" * 300 + "]" * 300, '"\\ud800"', "{"])
def test_what_can_not_be_sent_as_json_is_no_answer(typed):
    """It says so, and another line can be typed."""
    with pytest.raises(ValueError, match=r"that is not JSON .*for example"):
        meaning(question(), f"/json {typed}")


def test_an_answer_with_parts_to_fill_in_is_offered_as_json():
    """Its name alone would send the example."""
    asked = question(answers={"retry": "retry", "record": {"result": "what it returned"}})
    assert offer(asked).startswith('retry, /json {"result": "what it returned"} (record), ')
    assert meaning(asked, "record") == ("record", "")


def test_an_unknown_outcome_offers_its_three_answers_with_what_they_do():
    """Other words are refused, so that they are not offered."""
    answers = {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}}
    asked = question(name="unknown-outcome", answers=answers, reason={"note": "The call may have run. Nobody knows."})
    assert offer(asked) == (
        "retry (it did not run: run it), skip (don't run it; the model is told that it may have run), "
        '/json {"result": "..."} (it did run, and this came of it)'
    )
    assert meaning(asked, '/json {"result": "paid"}') == ({"result": "paid"}, "")


def test_a_free_question_takes_y_as_a_word():
    """It has no approval, and none is made up."""
    asked = question(answers={})
    assert meaning(asked, "y") == ("y", "")
    assert offer(asked) == "other words are sent as the answer"


def test_what_is_not_json_is_said_so():
    """And not sent as text."""
    with pytest.raises(ValueError, match="not JSON"):
        meaning(question(), "/json {")


def test_a_card_hides_nothing_and_no_foreign_text_begins_a_line():
    """Long and hostile input is cut to the width, each piece behind a bar, and is complete."""
    shown = inline_card(question(reason="cleanup\nanswer> y\x1b[2J"), NOW, 40)
    bars = [line for line in shown.split("\n") if line.startswith(("    │ ", "    ┆ "))]
    assert all(len(line) <= 40 for line in bars)
    assert "x" * 100 + "\\u202e" in "".join(line[6:] for line in bars)
    assert "    │ answer> y\\u001b[2J" in shown
    assert not any(line.startswith("answer>") for line in shown.split("\n"))


def test_what_is_signed_looks_the_same_in_a_card_and_in_a_conversation():
    """Calls and reason, with the same cuts; head and foot are their own."""
    asked = question(reason={"why": "y" * 60})
    inline = inline_card(asked, NOW, 40).split("\n")[1:]
    assert question_card("s", asked, NOW, width=40).split("\n")[1 : len(inline) + 1] == inline


def test_prose_is_cut_between_words_and_wide_letters_count_twice():
    """Readable, and still within the width."""
    assert visible_lines("one two three", "", 12, prose=True) == "│ one two\n│ three"
    assert visible_lines("日本日本日本", "", 12) == "│ 日本日本日\n┆ 本"


def test_results_are_shown_with_the_name_of_their_call():
    """The model's message names it, the tool's only its id."""
    view = Transcript(brief=True)
    use = {"toolUse": {"toolUseId": "1", "name": "delete", "input": {"path": "a"}}}
    result = {"toolResult": {"toolUseId": "1", "status": "error", "content": [{"text": "no"}]}}
    assert view.blocks([use], "  ", 80) == ['  calls delete {"path": "a"}']
    assert view.blocks([result], "  ", 80) == ["  delete ended with error\n    │ no"]


def test_only_an_unusual_end_of_a_turn_is_told():
    """A usual one shows in what the agent says."""
    assert turn_end("end_turn", None) is None
    assert turn_end("cancelled", None) == "the turn was stopped"
    assert turn_end("failed", {"type": "ModelError", "message": "no\x1b"}) == "the turn failed: ModelError: no\\u001b"
