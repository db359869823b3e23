"""`countersign dev` as a person uses it: one process tree, a worker that reloads, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import ROOT

from countersign.agent_client.cli.dev_plan import Plan, worker_environment
from countersign.agent_client.dev_server import free_port
from countersign.client import AgentClient

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

PATIENCE_S = 60

AGENTS = '''
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls
from gate.policy import WORDS

@tool
def work() -> str:
    """Work."""
    return "worked"

def refuse(event: BeforeToolCallEvent) -> None:
    event.cancel_tool = WORDS

def script(scene):
    if len(scene.turn) > 1:
        return scene.messages[-1]["content"][0]["toolResult"]["content"][0]["text"]
    return calls(("work", {}))

@durable("gate")
def gate() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[work], hooks=[refuse])
'''


class Dev:
    """A `countersign dev` in a folder with a package `gate`, ready."""

    def __init__(self, folder: Path, *flags: str) -> None:
        package = folder / "gate"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "agents.py").write_text(AGENTS)
        self.policy = package / "policy.py"
        self.policy.write_text('WORDS = "policy one"\n')
        self._said = folder / "said"
        with self._said.open("wb") as said, (folder / "json").open("wb") as out:
            self.process = subprocess.Popen(
                command("--agents", "gate.agents", "--port", str(free_port()), "--json", *flags),
                cwd=folder, stdout=out, stderr=said, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )  # fmt: skip
        until(lambda: (folder / "json").read_text().endswith("}\n") or self.process.poll() is not None, self.said)
        self.ready = json.loads((folder / "json").read_text())

    def said(self) -> str:
        """What it wrote to standard error."""
        return self._said.read_text()

    def hears(self, words: str, before: int = 0) -> None:
        """Wait until it has said these words, after so many characters."""
        until(lambda: words in self.said()[before:], self.said)

    async def answer(self) -> str:
        """What a session of its agent ends with."""
        client = await AgentClient.connect(self.ready["address"])
        result = await (await client.start("gate", "go")).result()
        assert result.message is not None
        return result.message["content"][0]["text"]

    def family(self) -> list[int]:
        """Process ids of it and its children."""
        return [self.process.pid, *children(self.process.pid)]

    def end(self, number: signal.Signals) -> int:
        """Send a signal, wait for its own end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def command(*words: str) -> list[str]:
    """The command line of `countersign dev`."""
    return [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "dev", *words]


def until(condition, said) -> None:
    """Poll for a condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Process ids of the children."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    """One that several tests share; each leaves it with a worker that serves."""
    found = Dev(tmp_path_factory.mktemp("dev"), "--no-ui")
    yield found
    found.end(signal.SIGTERM)


async def test_a_session_runs_through_it_and_json_says_where(dev):
    """Scripts read one object: where the server is, which agents, which worker."""
    assert await dev.answer() == "policy one"
    assert (dev.ready["agents"], dev.ready["task_queue"], dev.ready["ui"]) == (["gate"], "countersign", None)
    assert dev.ready["worker_pid"] in children(dev.process.pid)


async def test_an_edited_policy_serves_the_next_session(dev):
    """A helper module of the agents' package counts as policy too."""
    before = len(dev.said())
    dev.policy.write_text('WORDS = "policy two"\n')
    dev.hears("changed: gate/policy.py", before)
    dev.hears("countersign worker ready: agents gate", before)
    assert await dev.answer() == "policy two"


async def test_a_syntax_error_is_shown_and_the_next_change_serves_again(dev):
    """It says that no worker runs, and waits."""
    before = len(dev.said())
    dev.policy.write_text('WORDS = "policy three\n')
    dev.hears("waiting for a change", before)
    assert "SyntaxError" in dev.said()[before:]
    dev.policy.write_text('WORDS = "policy four"\n')
    dev.hears("countersign worker ready: agents gate", before)
    assert await dev.answer() == "policy four"


def test_a_worker_that_dies_is_replaced(dev):
    """By whatever signal, and it says so."""
    before = len(dev.said())
    (worker,) = [pid for pid in children(dev.process.pid) if b"countersign.worker" in cmdline(pid)]
    os.kill(worker, signal.SIGKILL)
    dev.hears("the worker was killed by SIGKILL; starting a new one", before)
    dev.hears("countersign worker ready: agents gate", before)


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_sigterm_ends_all_and_a_database_keeps_the_sessions(tmp_path):
    """Worker and server are gone when it has ended; with --database the next one knows the sessions."""
    first = Dev(tmp_path, "--ui-port", str(free_port()), "--database", str(tmp_path / "sessions.db"))
    assert first.ready["ui"] is not None
    client = await AgentClient.connect(first.ready["address"])
    session = await client.start("gate", "go", lifetime="open")
    assert await session.wait_for_questions() == []
    family = first.family()
    assert len(family) == 3
    assert first.end(signal.SIGTERM) == 0
    assert [pid for pid in family if alive(pid)] == []
    second = Dev(tmp_path, "--no-ui", "--database", str(tmp_path / "sessions.db"))
    try:
        again = (await AgentClient.connect(second.ready["address"])).session(session.id)
        status = await again.status()
        assert (status["status"], status["turn"]) == ("idle", 1)
    finally:
        family = second.family()
        second.end(signal.SIGKILL)
    until(lambda: not any(alive(pid) for pid in family), second.said)  # not even after SIGKILL


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--agents", "examples.janitor", "--port", "{taken}"), 3, "--address 127.0.0.1:{taken}"),
        (("--agents", "examples.janitor", "--port", "{free}", "--ui-port", "{taken}"), 3, "--no-ui"),
        (("--agents", "no_such_package.agents"), 1, "'no_such_package'"),
        (
            ("--agents", "examples.janitor", "--address", "{taken}", "--port", "{free}"),
            2,
            "--port: only for the embedded server",
        ),
        (("--agents", "examples.janitor", "--address", "127.0.0.1:1"), 3, "127.0.0.1:1"),
        (("--agents", "examples.no_such", "--no-reload", "--address", "127.0.0.1:{taken}"), 1, "can't serve"),
    ],
)
def test_what_can_not_start_says_why_and_what_to_do(temporal_server, flags, code, words):
    """A taken port, a module that is not there, flags that contradict each other, a server that is not there."""
    ports = {"taken": temporal_server.split(":")[1], "free": str(free_port())}
    ended = subprocess.run(
        command(*(flag.format(**ports) for flag in flags)),
        cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert ended.returncode == code, ended.stderr
    assert words.format(**ports) in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("address", [None, "there:7233"])
def test_settings_for_another_worker_do_not_meet_this_one(address):
    """Its own server is no other one's namespace, and its queue is the one that is announced."""
    plan = Plan([], "countersign", address, 7233, None, None, None, True, False)
    of_server = {"TEMPORAL_ADDRESS", "TEMPORAL_API_KEY", "COUNTERSIGN_NAMESPACE", "COUNTERSIGN_PROFILE"}
    of_server |= {"COUNTERSIGN_DEPLOYMENT_NAME", "COUNTERSIGN_BUILD_ID"}
    of_queue, others = {"COUNTERSIGN_QUEUE_PER_AGENT", "COUNTERSIGN_TOOLS_ONLY"}, {"HOME", "COUNTERSIGN_LOG_LEVEL"}
    kept = worker_environment(plan, dict.fromkeys(of_server | of_queue | others, "x"))
    assert {name for name in kept if kept[name] == "x"} == others | (set() if address is None else of_server)


def test_the_banner_names_the_next_command(temporal_server, tmp_path):
    """With the agent's name and the flags that another terminal needs; on a server that runs already."""
    out = tmp_path / "out"
    with out.open("wb") as stream:
        flags = ("--agents", "examples.janitor", "--address", temporal_server, "--task-queue", "dev-banner")
        process = subprocess.Popen(command(*flags), cwd=ROOT, stdout=stream, stderr=stream)
    try:
        until(lambda: "Ctrl-C" in out.read_text(), out.read_text)
        said = out.read_text()
        assert f"countersign chat janitor --address {temporal_server} --task-queue dev-banner" in said
        assert "on changes in examples/" in said
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
