"""The commands that answer and prompt: words that refuse, every offered answer, and receipts that say what was done."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import shlex
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from tests.client.test_sessions import SOON

from countersign.agent_client import first_cycle
from countersign.agent_client.answers import denial_block
from countersign.agent_client.cli.cards import question_card
from countersign.agent_client.cli.options import duration
from countersign.agent_client.cli.tables import print_stacked
from countersign.agent_core.interrupts import is_denial
from countersign.agent_core.messages import message_text
from countersign.agent_core.plain_answers import approves
from countersign.agent_core.wire import Question, ShownCall


def question(**fields):
    """A question about one call."""
    calls = [ShownCall(index=0, tool_use_id="t", tool="delete", input={"path": "a"})]
    return Question(id="int-1", name="really", digest="a" * 64, calls=calls, **fields)


@given(st.text().filter(str.strip), st.sampled_from(["n", "no", "nein", "reject", "y", ""]))
def test_a_refusal_with_words_never_approves(words, refusal):
    """Whatever the words and whatever the question calls its refusal."""
    answers = {"approve": "ja", "deny": refusal}
    sent = denial_block(question(answers=answers), words)["interruptResponse"]
    assert not approves(sent["response"])
    assert is_denial(sent["response"], answers), "the session takes it for a no, whatever the asker makes of it"
    assert sent["response"].endswith(words)
    assert sent["digest"] == "a" * 64


@pytest.mark.parametrize("answers", [{"deny": False}, {"deny": {"go": False}}, {}])
def test_a_refusal_that_is_not_text_takes_no_words(answers):
    """The asker would not understand them."""
    with pytest.raises(ValueError, match="respond"):
        denial_block(question(answers=answers), "no")


def test_a_reason_of_nothing_is_refused():
    """An empty one is a slip."""
    with pytest.raises(ValueError, match="empty"):
        denial_block(question(), " ")


async def test_the_reason_of_a_denial_reaches_the_model(served, shell):
    """And the receipt says that it was denied."""
    session = await served.start("truster", "delete a")
    await session.wait_for_questions(SOON)
    got = await shell("deny", session.id, "--reason", "keep the logs of May")
    assert got.stdout.startswith("denied: ")
    assert "n: keep the logs of May" in message_text((await session.result()).message)


async def test_a_reason_for_a_question_with_answers_of_its_own_is_wrong_usage(served, shell):
    """Exit code 2, and what to do instead."""
    session = await served.start("asker", "delete a")
    await session.wait_for_questions(SOON)
    assert "respond" in (await shell("deny", session.id, "--reason", "no", code=2)).stderr
    await session.stop()


async def test_every_offered_answer_is_a_command_that_works(served, shell):
    """What the card says of trust does trust, bound to the digest."""
    session = await served.start("truster", "delete a", lifetime="open")
    await session.wait_for_questions(SOON)
    card = (await shell("interrupts", session.id)).stdout.splitlines()
    line = card[card.index("  to trust") + 1]
    assert "--digest" in line
    got = await shell(*shlex.split(line)[1:], "--as", "bob")
    assert got.stdout.startswith("answered: ")
    assert (await session.invoke("delete b")).stop_reason == "end_turn"  # trusted: not asked again
    await session.close()


ODD = ["", "-x", "\x1b[1A", "a\u202eb", -1, 0, None, True, {"result": "it's done"}, ["a b"], "two words", 'say "yes"']


@pytest.mark.parametrize("answer", ODD, ids=repr)
async def test_an_offered_answer_keeps_its_type_through_the_shell(answer, served, shell):
    """Pasted from the card, what arrives is what was offered; it refuses, for only {"go": true} approves."""
    session = await served.start("asker", "delete a")
    (asked,) = await session.wait_for_questions(SOON)
    offered = asked.model_copy(update={"answers": {"odd": answer}})
    lines = question_card(session.id, offered, datetime.now(UTC)).splitlines()
    await shell(*shlex.split(lines[lines.index("  to odd") + 1])[1:])
    (line,) = [entry for entry in await session.audit() if entry.event == "answered"]
    assert json.dumps(line.detail["answer"]["response"]) == json.dumps(answer)


async def test_the_only_open_question_is_answered_without_its_id(served, shell):
    """`respond SESSION VALUE`."""
    session = await served.start("asker", "delete a")
    await session.wait_for_questions(SOON)
    await shell("respond", session.id, '{"go": true}', "--json-value")
    assert message_text((await session.result()).message) == "deleted a"


async def test_an_id_without_a_value_is_not_taken_for_one(served, shell):
    """A forgotten VALUE must not become an answer."""
    session = await served.start("asker", "delete a b")
    first, second = await session.wait_for_questions(SOON)
    assert "VALUE is missing" in (await shell("respond", session.id, first.id, code=2)).stderr
    which = (await shell("respond", session.id, "yes", code=2)).stderr
    assert first.id in which and second.id in which
    assert "quote" in (await shell("respond", session.id, first.id, "two", "words", code=2)).stderr
    assert len(await session.interrupts()) == 2
    await session.stop()


async def test_a_second_answer_is_told_who_was_first(served, shell):
    """The session's own refusal, not just that the question is gone."""
    session = await served.start("asker", "delete a b", resume="all")
    first, _ = await session.wait_for_questions(SOON)
    assert (await shell("approve", session.id, first.id, "--as", "ann")).stdout.startswith("approved: ")
    for words in (("respond", session.id, first.id, "n"), ("deny", session.id, first.id)):
        assert "already answered by ann" in (await shell(*words, code=1)).stderr
    again = ("respond", session.id, first.id, '{"go": true}', "--json-value", "--digest", first.digest[:16])
    assert "recorded before" in (await shell(*again)).stdout
    await session.stop()


async def test_a_further_prompt_is_queued_or_waited_for(served, shell):
    """With --wait, the command prints how the loop stopped."""
    session = await served.start("asker", "hello", lifetime="open")
    assert "you said: again" in (await shell("prompt", session.id, "again", "--wait")).stdout
    assert (await shell("prompt", session.id, "delete a")).stdout == "queued\n"
    await session.wait_for_questions(SOON)
    assert "waits for answers" in (await shell("prompt", session.id, "more", code=1)).stderr
    await session.stop_and_wait(close=True)
    assert "has ended" in (await shell("prompt", session.id, "more", code=1)).stderr


async def test_a_prompt_sent_again_under_its_id_runs_once(served, shell):
    """The second one gets the outcome of the first; the id is for those that wait."""
    session = await served.start("asker", "hello", lifetime="open")
    words = ("prompt", session.id, "again", "--update-id", "mine")
    assert [(await shell(*words, "--wait")).stdout for _ in range(2)] == ["  assistant\n    │ you said: again\n"] * 2
    assert (await session.invoke("again", update_id="mine")).turn == (await session.status())["turn"] == 2
    assert "needs --wait" in (await shell(*words, code=2)).stderr
    with pytest.raises(ValueError, match="blank"):
        await session.invoke("again", update_id=" ")
    await session.close()


async def test_a_prompt_comes_from_standard_input(served, served_queue, shell):
    """ "-" reads it; the last line break is the shell's."""
    got = await shell("start", "asker", "-", "--wait", "--json", "--task-queue", served_queue, given="two\nlines\n")
    assert message_text(json.loads(got.stdout)["message"]) == "you said: two\nlines"


async def test_a_session_of_one_turn_takes_no_further_prompt(served, shell):
    """It says how to start one that does."""
    session = await served.start("asker", "delete a")
    await session.wait_for_questions(SOON)
    assert "--open" in (await shell("prompt", session.id, "more", code=1)).stderr
    await session.stop()


async def test_a_mistyped_agent_fails_at_once(served, served_queue, shell, monkeypatch):
    """Though nobody waits for the result; an open session says how to end it."""
    monkeypatch.setattr(first_cycle, "PATIENCE", timedelta(seconds=60))  # a busy worker may take longer to say it
    error = (await shell("start", "askr", "hello", "--task-queue", served_queue, code=1)).stderr
    assert "no agent named 'askr'" in error
    stays = (await shell("start", "askr", "hello", "--open", "--task-queue", served_queue, code=1)).stderr
    assert "stop askr-" in stays and "--close" in stays
    words = ("start", "askr", "hello", "--open", "--json", "--task-queue", served_queue)
    told = json.loads((await shell(*words, code=1)).stderr)["error"]
    assert told["session_id"].startswith("askr-") and "no agent named 'askr'" in told["message"]


async def test_the_audit_is_told_in_plain_words(served, shell):
    """Who answered what; no reprs of Python, no digest of 64 digits."""
    session = await served.start("asker", "delete a")
    (asked,) = await session.wait_for_questions(SOON)
    await shell("approve", session.id, "--as", "ann", "--comment", "fine")
    await session.result()
    audit = (await shell("show", session.id)).stdout.split("audit")[1]
    assert f'ann answered {{"go": true}}, comment "fine" to really ({asked.id})' in audit
    assert f'delete started with {{"path": "a"}}, approved by ann ({asked.id})' in audit
    assert "{'" not in audit and "None" not in audit
    assert asked.digest not in audit


def at_a_terminal(typed, *words, address):
    """Run the command at a terminal where this is typed; its exit code and what it shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", *words, "--address", address],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "NO_COLOR": "1"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # so that Ctrl-C comes from it
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the command ends
        while part := os.read(master, 4096):
            shown += part
            if typed and b"[y/N]" in shown:
                os.write(master, typed.encode())
                typed = ""
    os.close(master)
    return process.wait(30), shown.decode()


@pytest.mark.parametrize(
    ("typed", "code", "status"),
    [("y\n", 0, "closed"), ("n\n", 1, "waiting"), ("\x04", 1, "waiting"), ("\x03", 130, "waiting")],
)
async def test_at_a_terminal_an_approval_is_shown_before_it_is_given(served, temporal_server, typed, code, status):
    """Nobody signs what they have not seen; "n" and Ctrl-D answer nothing, Ctrl-C leaves."""
    session = await served.start("asker", "delete a")
    assert await session.wait_for_questions(SOON)
    left, shown = await asyncio.to_thread(at_a_terminal, typed, "approve", session.id, address=temporal_server)
    assert (left, "will run delete" in shown, "Approve? [y/N]" in shown) == (code, True, True), shown
    if status == "closed":
        await session.result()
    assert (await session.status())["status"] == status


@pytest.mark.parametrize(("text", "seconds"), [("45m", 2_700), ("3h", 10_800), ("2d", 172_800), ("1.5 h", 5_400)])
def test_a_duration_is_a_number_with_a_unit(text, seconds):
    """As people write it."""
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "2", "0d", "-1h", "soon", "2w", "99999999999999d", "9" * 400 + "s"])
def test_what_is_no_duration_says_what_would_be(text):
    """With an example."""
    with pytest.raises(typer.BadParameter, match="like 2d"):
        duration(text)


def test_in_a_narrow_terminal_questions_stand_below_each_other(capsys):
    """No word is broken, and ids can be copied."""
    row = [("janitor-0a1b2c3d4e5f", ""), ("approval", "waiting"), ("delete_files {...}", "")]
    print_stacked(("session", "question", "would run"), [row])
    assert capsys.readouterr().out.splitlines() == [
        "janitor-0a1b2c3d4e5f",
        "  question   approval",
        "  would run  delete_files {...}",
    ]


def test_a_question_that_is_asked_again_says_why():
    """An edit that did not fit, for instance."""
    card = question_card("s", question(fault="path: Field required"), datetime(2026, 1, 2, tzinfo=UTC))
    assert "asked again" in card and "path: Field required" in card
