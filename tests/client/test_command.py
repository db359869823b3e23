"""The command without a session: usage, exit codes, what it says when it can't connect."""

import asyncio
import json
import os
import pty
import shlex
import subprocess
import sys
import uuid
from datetime import UTC, datetime

import pytest
import typer
from tests.client.conftest import start_bare
from typer.testing import CliRunner

import countersign
from countersign.agent_client.cli import COMMANDS, app
from countersign.agent_client.cli.answering import parsed
from countersign.agent_client.cli.cards import question_card
from countersign.agent_client.cli.choice import Choice
from countersign.agent_client.cli.running import UsageError, exit_code
from countersign.agent_client.cli.terminal import styled
from countersign.agent_client.connection import way_there
from countersign.agent_client.errors import (
    AgentRunError,
    ConnectionFailedError,
    NoReplyError,
    SessionEndedError,
    SessionExistsError,
    SessionNotFoundError,
)
from countersign.agent_client.moments import moment
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.shell import leading_to
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.wire import MEMO_QUESTIONS, Question, ShownCall

NOBODY = "127.0.0.1:1"
NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def call(*words):
    """Run the command in this process."""
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AnswerRefused("expired", "too late"), 1),
        (SessionEndedError("s", "completed"), 1),
        (SessionExistsError("s"), 1),
        (AgentRunError("s", "ModelError", "no"), 1),
        (UsageError("say which"), 2),
        (ValueError("empty"), 2),
        (ConnectionFailedError("down"), 3),
        (SessionNotFoundError("s", "default"), 3),
        (NoReplyError("unknown"), 3),
        (KeyError("a bug"), None),
    ],
)
def test_exit_codes_tell_refused_usage_and_unreachable_apart(error, code):
    """Scripts rely on them; a bug gets a traceback instead."""
    assert exit_code(error) == code


def test_without_a_server_it_says_so_in_one_line_with_the_next_step():
    """The address that was tried is in the message."""
    got = call("interrupts", "--address", NOBODY)
    assert got.exit_code == 3
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    assert NOBODY in got.stderr
    assert "TEMPORAL_ADDRESS" in got.stderr


def test_with_json_errors_are_json_too():
    """Programs read one format."""
    error = json.loads(call("show", "s", "--address", NOBODY, "--json").stderr)["error"]
    assert (error["type"], error["exit_code"]) == ("ConnectionFailedError", 3)


def test_a_missing_argument_is_wrong_usage():
    """Exit code 2, as everywhere."""
    assert call("approve").exit_code == 2


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("0", 0), ("null", None), ('"y"', "y"), ('{"a": [1]}', {"a": [1]})]
)
def test_json_values_keep_their_type(text, value):
    """`--json-value` sends false as false and not as text."""
    assert parsed(text) == value
    assert type(parsed(text)) is type(value)


@pytest.mark.parametrize("text", ["yes", "NaN", "Infinity", "{"])
def test_what_is_not_json_is_wrong_usage(text):
    """NaN is a constant of JavaScript and not of JSON."""
    with pytest.raises(UsageError, match="not JSON"):
        parsed(text)


def question(identifier="int-1", digest="a" * 64, **fields):
    """A question about one call."""
    calls = [ShownCall(index=0, tool_use_id="t", tool="delete_files", input={"paths": ["/tmp/\u202ea"]})]
    return Question(id=identifier, name="delete", digest=digest, calls=calls, **fields)


class Session(SessionReader):
    """A client with one session that has these questions."""

    def __init__(self, *questions):
        super().__init__(None, "s")
        self._questions = questions

    def session(self, session_id):
        """Any session is this one."""
        return self

    async def interrupts(self):
        """Its questions."""
        return list(self._questions)

    async def audit(self):
        """Nothing is known of others."""
        return []


async def chosen(client, *choice):
    """The questions that a choice means."""
    return await Choice(*choice).questions(client)


async def test_the_only_open_question_needs_no_id():
    """The common case is short."""
    assert [item.id for item in await chosen(Session(question()), "s", None, False, None)] == ["int-1"]


async def test_with_several_open_questions_it_asks_which_and_lists_them():
    """Nothing is approved by guessing."""
    with pytest.raises(UsageError, match=r"int-1 .*int-2"):
        await chosen(Session(question(), question("int-2")), "s", None, False, None)


async def test_all_takes_every_open_question():
    """One batch."""
    found = await chosen(Session(question(), question("int-2")), "s", None, True, None)
    assert len(found) == 2


async def test_a_question_that_changed_since_it_was_shown_is_not_answered():
    """The digest on the card is the one that must still stand."""
    with pytest.raises(AnswerRefused, match="not the one you saw"):
        await chosen(Session(question()), "s", "int-1", False, "b" * 16)
    assert await chosen(Session(question()), "s", "int-1", False, "A" * 16)


@pytest.mark.parametrize(
    "choice", [("$(id)", "int-1", False, "b" * 16), ("$(id)", None, False, None), ("$(id)", "int-9", False, None)]
)
async def test_a_refusal_proposes_a_command_that_can_be_pasted(choice):
    """Anybody may have chosen the session's id."""
    client = Session(question()) if choice[1] else Session()
    client.id = choice[0]
    with pytest.raises(AnswerRefused, match=r"countersign (show|interrupts) '\$\(id\)'"):
        await chosen(client, *choice)


async def test_what_a_command_proposes_leads_to_where_it_connects(temporal_server):
    """It can be pasted as it is: the flags of the connection stand in it, unless the environment has them."""
    words, nowhere = ["show", "gone", "--namespace", "default"], {"TEMPORAL_ADDRESS": None, "TEMPORAL_NAMESPACE": None}
    for flags, env in ((["--address", temporal_server], nowhere), ([], {"TEMPORAL_ADDRESS": temporal_server})):
        got = await asyncio.to_thread(CliRunner().invoke, app, [*words, *flags], env=env)
        assert got.stderr.endswith(" ".join(["list the sessions with: countersign list", *flags]) + "\n")


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        ({}, "--profile prod --address there:7233 --namespace agents"),
        ({"TEMPORAL_PROFILE": "prod", "TEMPORAL_ADDRESS": "there:7233"}, "--namespace agents"),
    ],
)
def test_a_card_binds_its_commands_to_the_server_too(env, flags, monkeypatch, tmp_path):
    """Every one of them, before what ends the options; a key of the profile is not told."""
    (tmp_path / "temporal.toml").write_text('[profile.prod]\naddress = "other:7233"\napi_key = "secret"\n')
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TEMPORAL_CONFIG_FILE": str(tmp_path / "temporal.toml"), **env}.items():
        monkeypatch.setenv(name, value)
    with leading_to(way_there("there:7233", "agents", "prod")):
        card = question_card("s", question(answers={"approve": "y", "deny": "n", "lower": -1}), NOW)
    assert f"countersign approve s int-1 --digest {'a' * 16} {flags}\n" in card
    assert f"countersign respond s int-1 --json-value --digest {'a' * 16} {flags} -- -1\n" in card
    assert card.count("countersign ") == card.count(flags) == 4
    assert "secret" not in card


def test_an_id_in_use_is_quoted_too():
    """It came from whoever started that session."""
    assert str(SessionExistsError("a;id")).endswith("countersign show 'a;id'")


async def test_a_short_beginning_of_a_digest_binds_nothing():
    """An input with the same one could be crafted; the cards show enough."""
    with pytest.raises(UsageError, match="16 or more"):
        await chosen(Session(question()), "s", "int-1", False, "a" * 15)


def test_a_card_shows_what_will_run_and_how_to_answer():
    """Input as JSON with nothing hidden, the times, and commands bound to the digest."""
    card = question_card("s", question(asked_at="2026-01-02T09:00:00+00:00", reason="cleanup\x1b[1A"), NOW)
    assert "will run delete_files" in card
    assert '"/tmp/\\u202ea"' in card
    assert "cleanup\\u001b[1A" in card
    assert "2026-01-02 09:00:00 UTC (3 h ago)" in card
    assert f"countersign approve s int-1 --digest {'a' * 16}" in card
    assert f"countersign respond s int-1 VALUE --digest {'a' * 16}" in card


def test_a_free_question_offers_no_approve():
    """Only what the asker understands is offered."""
    assert "countersign approve" not in question_card("s", question(answers={}), NOW)


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-01-02T12:00:30Z", "(in 30 s)"),
        ("2026-01-04T13:00:00+01:00", "2026-01-04 12:00:00 UTC (in 2 days)"),
        ("\x1bnever", "\\u001bnever"),
    ],
)
def test_times_are_shown_in_utc_with_their_distance(at, shown):
    """What is no time is shown as it is, harmless."""
    assert shown in moment(at, NOW)


def test_help_does_not_load_temporals_client():
    """It takes over a second, and help must come at once."""
    code = "import sys, countersign.agent_client.cli; print([m for m in ('temporalio', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_draws_with_nothing_that_is_slow():
    """Printing it loads no more than importing the command does."""
    code = (
        "import sys; from countersign.agent_client.cli import app\n"
        "try: app(['watch', '--help'])\n"
        "finally: print([m for m in ('temporalio', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("word", list(COMMANDS))
def test_every_command_has_an_example_and_json(word):
    """Its help teaches, and programs can use it."""
    shown = call(word, "--help").stdout
    assert f"  countersign {word} " in shown or f"  countersign {word}\n" in shown
    assert "--json" in shown or word == "chat"  # a conversation is for a person


@pytest.mark.parametrize("word", list(COMMANDS))
def test_the_examples_are_commands_that_parse(word):
    """Options and arguments of an example exist."""
    commands = typer.main.get_group(app).commands
    for line in COMMANDS[word][1]:
        name, *words = shlex.split(line)
        assert commands[name].make_context(name, words).command is commands[name]


def test_the_version_is_the_packages():
    """As in reports of faults."""
    assert call("--version").stdout == f"countersign {countersign.__version__}\n"


def completed(**env):
    """What bash would offer; standard error stays silent."""
    script = "from countersign.agent_client.cli import main; import sys; sys.argv[0] = 'countersign'; main()"
    env = {**os.environ, "_COUNTERSIGN_COMPLETE": "complete_bash", **env}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_are_completed():
    """By their beginning."""
    assert completed(COMP_WORDS="countersign li", COMP_CWORD="1") == ["list"]


async def test_session_ids_are_completed_from_the_list(unserved):
    """Those that begin so, and only those that are one word to a shell."""
    begin = f"comp-{uuid.uuid4().hex[:8]}"
    sessions = [await unserved.start("asker", "x", session_id=begin + end) for end in ("-a", "-b", "-$(c)")]
    config = unserved.temporal.service_client.config
    env = {"COMP_WORDS": f"countersign show {begin}", "COMP_CWORD": "2", "TEMPORAL_ADDRESS": config.target_host}
    async with asyncio.timeout(60):
        while len(found := await asyncio.to_thread(completed, **env)) < 2:
            await asyncio.sleep(0.1)
    assert sorted(found) == [f"{begin}-a", f"{begin}-b"]
    for session in sessions:
        await session.terminate("test")


def test_without_a_server_nothing_is_completed_and_nothing_said():
    """A Tab is no place for an error."""
    env = {"COMP_WORDS": "countersign show x", "COMP_CWORD": "2", "TEMPORAL_ADDRESS": NOBODY}
    assert completed(**env) == []


async def test_a_terminal_of_ascii_gets_escapes_and_no_traceback(unserved):
    """Also what is not ASCII in a card: a memo's text, the bar before it."""
    card = {"id": "int-1", "name": "löschen", "calls": []}
    name = await start_bare(unserved.temporal, unserved.task_queue, {MEMO_QUESTIONS: [card]})
    address = unserved.temporal.service_client.config.target_host
    script = "from countersign.agent_client.cli import main; main()"
    words = [sys.executable, "-c", script, "show", name, "--address", address]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = await asyncio.to_thread(subprocess.run, words, check=True, env=env, capture_output=True)
    assert b"l\\xf6schen" in done.stdout
    await unserved.session(name).terminate("test")


def on_a_terminal(**env):
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    script = (
        "from countersign.agent_client.cli.terminal import styled; print(styled('waits', 'waiting')); "
        "from countersign.agent_client.cli.tables import print_table; print_table(['x'], [[('waits', 'waiting')]])"
    )
    done = subprocess.Popen([sys.executable, "-c", script], stdout=theirs, env={**os.environ, "TERM": "xterm", **env})
    done.wait(30)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    return shown


def test_colours_are_for_terminals_and_can_be_switched_off():
    """NO_COLOR is heard; a pipe gets none."""
    assert "\x1b[" in on_a_terminal(NO_COLOR="")
    assert on_a_terminal(NO_COLOR="1").split() == ["waits", "x", "waits"]
    assert styled("waits", "waiting") == "waits"
