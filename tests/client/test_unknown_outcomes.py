"""Questions about a call of which nobody knows whether it ran, as cards and lists show them."""

import json
import shlex
from datetime import UTC, datetime

import pytest
from tests.client.test_sessions import SOON

from countersign.agent_client.cli.cards import card_calls, question_card, short_card
from countersign.agent_client.cli.looking import print_questions
from countersign.agent_core.wire import Question, ShownCall

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
ANSWERS = {"retry": "retry", "skip": "skip", "record a result": {"result": "what it returned"}}
LOST, UNTAKEN = "The call may have run. Nobody knows.", "Nobody has run the call."


def question(note, **fields):
    """As a session asks it."""
    calls = [ShownCall(index=0, tool_use_id="t", tool="deploy", input={})]
    reason = {"tool": "deploy", "detail": "no heartbeat", "note": note}
    asked = {"id": "int-1", "name": "unknown-outcome", "digest": "a" * 64, "calls": calls, "answers": ANSWERS}
    return Question(**{**asked, "reason": reason, **fields})


def card_of(note):
    """As a memo keeps it."""
    reason = json.dumps({"detail": "no heartbeat", "note": note, "tool": "deploy"}, separators=(",", ":"))
    return {"name": "unknown-outcome", "calls": [{"tool": "deploy"}], "reason": reason, "answers": ANSWERS}


def test_the_card_says_what_each_answer_does_and_offers_no_other():
    """The call may have run already; what is no answer to this question is not offered."""
    card = question_card("s", question(LOST), NOW)
    assert "  may have run deploy with" in card and "will run" not in card
    assert "to retry (it did not run: run it)" in card
    assert "to skip (don't run it; the model is told that it may have run)" in card
    assert f"""respond s int-1 '{{"result": "..."}}' --json-value --digest {"a" * 16}""" in card
    assert "of your own" not in card and "VALUE" not in card


def test_the_card_of_a_call_that_nobody_took_does_not_say_that_it_may_have_run():
    """It surely has not."""
    card = question_card("s", question(UNTAKEN), NOW)
    assert "  nobody has run deploy with" in card and "may have run" not in card


@pytest.mark.parametrize(
    ("others", "offered"),
    [
        ({"approve": "y", "deny": "n"}, ["all at once: countersign approve s --all  or  countersign deny s --all"]),
        ({"deny": "n"}, ["all at once: countersign deny s --all"]),
        (ANSWERS, []),
    ],
)
def test_an_answer_to_all_is_offered_if_all_take_it(capsys, others, offered):
    """One question among them that has no such answer, and the command would be refused."""
    yes_or_no = question("x", answers={"approve": "y", "deny": "n"})
    print_questions("s", [yes_or_no, question(LOST, answers=others)])
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("all at once")] == offered


@pytest.mark.parametrize(("note", "words"), [(LOST, "may have run"), (UNTAKEN, "nobody has run")])
def test_lists_and_short_cards_say_it_too(note, words):
    """From the memo, with no worker."""
    assert card_calls(card_of(note)).startswith(f"{words}: deploy")
    assert f"  {words} deploy with" in short_card(card_of(note), NOW)


def test_a_question_of_a_hook_that_has_that_name_is_shown_as_any_other():
    """Its answers are its own."""
    card = question_card("s", question("x", answers={"approve": "y", "deny": "n"}), NOW)
    assert "will run deploy" in card and "countersign approve s int-1" in card


async def test_the_command_that_records_a_result_can_be_pasted(served, shell):
    """What arrives is an object with a result."""
    session = await served.start("asker", "delete a")
    (asked,) = await session.wait_for_questions(SOON)
    lost = asked.model_copy(update={"name": "unknown-outcome", "answers": ANSWERS})
    lines = question_card(session.id, lost, NOW).splitlines()
    (place,) = [place for place, line in enumerate(lines) if line.startswith("  to record a result")]
    await shell(*shlex.split(lines[place + 1])[1:])
    (line,) = [entry for entry in await session.audit() if entry.event == "answered"]
    assert line.detail["answer"]["response"] == {"result": "..."}
