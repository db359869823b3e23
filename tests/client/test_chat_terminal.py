"""`countersign chat` in a real terminal (tmux), with a real server, worker and files."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid

import pytest
from tests.client.test_stopping import until_stop_is_noted
from tests.conftest import ROOT, WorkerProcess

from countersign.client import AgentClient

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

PATIENCE_S = 60
OLD = 1_600_000_000


class Screen:
    """A chat in a terminal of its own."""

    def __init__(self, worker: WorkerProcess, *words: str) -> None:
        self._tmux = ["tmux", "-L", f"chat-{uuid.uuid4().hex[:8]}", "-f", os.devnull]
        flags = ["--address", worker.address, "--task-queue", worker.queue]
        run = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "chat", *words, *flags]
        self._do("new-session", "-d", "-x", "120", "-y", "60", "exec " + shlex.join(["sh", "-c", LATER, "-", *run]))

    def _do(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout

    def types(self, text: str, enter: bool = True) -> None:
        """Type a text, with Enter behind it."""
        self._do("send-keys", "-l", text)
        if enter:
            self.presses("Enter")

    def presses(self, key: str) -> None:
        """A key by tmux's name for it."""
        self._do("send-keys", key)

    def text(self) -> str:
        """All that it has shown."""
        return self._do("capture-pane", "-p", "-S", "-500").rstrip()

    def shows(self, words: str, times: int = 1) -> str:
        """Wait until the words stand there; returns all of it."""
        deadline = time.monotonic() + PATIENCE_S
        while (shown := self.text()).count(words) < times:
            assert time.monotonic() < deadline, f"no {words!r} in:\n{shown}"
            time.sleep(0.05)
        return shown

    def close(self) -> None:
        """End the terminal and all in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


LATER = '"$@"; echo "left with $?"; exec sleep 1000'
"""Runs the command and stays, so that its last words can be read."""


@pytest.fixture(scope="module")
def worker(temporal_server, tmp_path_factory):
    """A worker that the tests may kill, if they start it again."""
    agents = "examples.janitor,tests.client.served_agents,lab.agents"
    found = WorkerProcess(temporal_server, agents, tmp_path_factory.mktemp("chat")).start()
    yield found
    found.kill()


@pytest.fixture
def chat(worker):
    """Opens chats; they are closed with the test."""
    screens = []

    def opened(*words: str) -> Screen:
        screens.append(Screen(worker, *words))
        return screens[-1]

    yield opened
    for screen in screens:
        screen.close()


@pytest.fixture
def attic(tmp_path):
    """A folder with an old file."""
    old = tmp_path / "old.log"
    old.touch()
    os.utime(old, (OLD, OLD))
    return old


def please(attic) -> str:
    return f"Delete files older than 5 days in {attic.parent}"


def session_in(shown: str) -> str:
    """The session's id, from the screen."""
    return shown.split("  session ", 1)[1].split(maxsplit=1)[0]


def test_a_yes_at_the_question_lets_the_call_run(chat, attic):
    """Prompt, tools as they come, the question in full, y: the file is gone. Then another turn, and the way back."""
    screen = chat("janitor", "--as", "ana")
    screen.shows("you>")
    screen.types(please(attic))
    shown = screen.shows("answer>")
    assert "list_files returned" in shown
    assert "will run delete_files with" in shown
    assert str(attic) in shown
    assert attic.exists()
    screen.types("y")
    screen.shows("I deleted 1 files")
    assert not attic.exists()
    screen.shows("you>", times=2)
    screen.types("/quit")
    shown = screen.shows("left with 0")
    assert f"countersign chat --session {session_in(shown)} --address" in shown


def test_words_at_the_question_refuse_and_reach_the_model(chat, attic):
    """They are sent as they are, and it says so; the file stays."""
    screen = chat("janitor", please(attic))
    screen.shows("answer>")
    screen.presses("Enter")
    screen.shows("/help for more")
    screen.shows("answer>", times=2)
    screen.types("no: it is evidence")
    screen.shows('sent as the answer: "no: it is evidence"')
    shown = screen.shows("I deleted nothing")
    assert "User denied permission to delete files: no: it is evidence" in shown
    assert attic.exists()


async def test_an_answer_from_elsewhere_takes_the_input_line_away(chat, attic, worker):
    """It says who answered and what; what was half typed goes nowhere."""
    screen = chat("janitor", please(attic))
    session = session_in(screen.shows("answer>"))
    screen.types("n", enter=False)
    handle = (await AgentClient.connect(worker.address)).session(session)
    [question] = await handle.interrupts()
    await handle.approve(question.id, responder="bob")
    screen.shows('bob answered "y" to ')
    screen.shows("I deleted 1 files")
    screen.shows("you>")
    assert not attic.exists()


def test_a_question_outlives_the_worker_and_the_answer_too(chat, attic, worker):
    """Killed while it is asked: an answer given meanwhile is sent until a worker is back, and counts."""
    screen = chat("janitor", please(attic))
    screen.shows("answer>")
    worker.kill()
    screen.types("y")
    screen.shows("sending the answer")
    worker.start()
    screen.shows("I deleted 1 files")
    assert not attic.exists()


def test_a_session_that_waits_is_taken_up_again(chat, attic, worker):
    """Left at the question with Ctrl-D; with --session it is asked again, and --close ends the session."""
    first = chat("janitor", please(attic))
    session = session_in(first.shows("answer>"))
    first.presses("C-d")
    first.shows("stays open")
    second = chat("--session", session, "--close")
    shown = second.shows("answer>")
    assert "These can go." in shown
    second.types("n")
    second.shows("I deleted nothing")
    second.shows("you>")
    second.presses("C-d")
    second.shows("is closed")
    third = chat("--session", session)
    third.shows("has ended (completed)")
    third.shows("left with 1")


def test_what_is_typed_before_a_question_is_no_answer_to_it(chat, attic):
    """A pasted prompt with a second line "y" signs nothing, and neither does typing ahead."""
    screen = chat("janitor")
    screen.shows("you>")
    screen.types(f"{please(attic)}\ny\ny")
    screen.shows("answer>")
    screen.types("/json 0")
    assert "User denied permission to delete files: 0" in screen.shows("I deleted nothing")
    assert attic.exists()


def test_two_questions_are_asked_one_after_the_other_with_the_askers_own_answers(chat):
    """y sends what the asker calls approval; each call has its own answer."""
    screen = chat("asker", "delete a b")
    screen.shows('"path": "a"')
    screen.shows("answer>")
    screen.types("y")
    screen.shows('"path": "b"', times=2)
    screen.shows("answer>", times=2)
    screen.types("n")
    screen.shows("deleted a; refused: {'go': False}")


def test_a_failed_turn_is_told_and_the_chat_goes_on(chat):
    """The session stays open for the next prompt."""
    screen = chat("asker", "fail now")
    screen.shows("the turn failed: ")
    screen.shows("you>")
    screen.types("hello")
    screen.shows("you said: hello")


async def test_ctrl_c_stops_the_turn_after_its_tool_and_at_the_prompt_nothing(chat, tmp_path, worker):
    """The first one stops; the chat goes on."""
    effects = tmp_path / "effects"
    screen = chat("free", f"effects={effects} held:a effect:b")
    async with asyncio.timeout(PATIENCE_S):
        while not effects.exists() or "a-began" not in effects.read_text():
            await asyncio.sleep(0.05)
    screen.presses("C-c")
    shown = screen.shows("stopping after the tools that run")
    await until_stop_is_noted((await AgentClient.connect(worker.address)).session(session_in(shown)))
    effects.with_name("effects.go").touch()
    screen.shows("the turn was stopped")
    screen.shows("you>")
    screen.presses("C-c")
    screen.shows("nothing runs")


def test_an_agent_that_nobody_serves_is_told(chat):
    """Not a spinner for ever."""
    screen = chat("nobody-serves-this", "hello")
    screen.shows("no agent named 'nobody-serves-this'")
    screen.shows("you>")


@pytest.mark.parametrize(
    ("words", "told"),
    [(("janitor",), "start AGENT PROMPT --wait"), ((), "needs a terminal")],
)
def test_without_a_terminal_it_points_to_start(words, told):
    """Exit code 2: a script would hang here."""
    run = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "chat", *words]
    ended = subprocess.run(run, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (ended.returncode, told in ended.stderr) == (2, True)
