"""docs/answering.md holds: what it shows are its programs, and each of them gets a real session done."""

import asyncio
import base64
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import WorkerProcess

from countersign.agent_client.dev_server import free_port, temporal_binary
from countersign.agent_core.answers import REFUSAL_CODES
from countersign.client import SessionUnreadableError

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "docs" / "other-languages"
PAGE = ROOT / "docs" / "answering.md"
MARKS = {"answer.sh": "sh", "answer.ts": "ts", "answer.go": "go", "answer.py": "python no-run", "bot.py": "python"}
READY_S, RUN_S, INSTALL_S = 60, 120, 60
EXACT = "application/json+no-payload-shorthand"
NO_NETWORK = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONN(REFUSED|RESET|ABORTED)|E?TIMEDOUT|E(NET|HOST)UNREACH|ERR_SOCKET_TIMEOUT|E(403|407|429|5\d\d))\b"
)
"""What npm says if the registry can't be reached, or does not want this machine."""


class Server:
    """A dev server with the HTTP API at a known port, and a worker that serves the janitor."""

    def __init__(self, grpc: str, http: str, queue: str) -> None:
        self.http, self.queue = http, queue
        self.env = {
            **os.environ, "TEMPORAL_ADDRESS": grpc, "TEMPORAL_HTTP": http, "COUNTERSIGN_TASK_QUEUE": queue,
        }  # fmt: skip

    def request(self, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        """What the HTTP API answers."""
        request = urllib.request.Request(
            f"{self.http}/api/v1/namespaces/default{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": media_type, "Accept": media_type},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


def until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it gives something."""
    deadline = time.monotonic() + READY_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {READY_S} s"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Server and worker, for the whole module."""
    folder = tmp_path_factory.mktemp("other-languages")
    grpc, http = free_port(), free_port()
    ports = ["--ip", "127.0.0.1", "--port", str(grpc), "--http-port", str(http)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [temporal_binary(), "server", "start-dev", "--headless", *ports], stdout=log, stderr=log
        )
    worker = None
    try:
        found = Server(f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}", f"q-{uuid.uuid4().hex[:8]}")
        until(lambda: _answers(found))
        worker = WorkerProcess(f"127.0.0.1:{grpc}", "examples.janitor", folder, found.queue).start()
        yield found
    finally:
        if worker is not None:
            worker.kill()
        process.terminate()
        process.wait(30)


def _answers(server: Server) -> bool:
    try:
        return bool(server.request("/workflows?query=WorkflowType%3D%22none%22") is not None)
    except OSError:
        return False


@pytest.fixture
def attic(tmp_path: Path) -> Path:
    """A folder with one old file."""
    folder = tmp_path / "attic"
    folder.mkdir()
    (folder / "old.log").write_text("old")
    os.utime(folder / "old.log", (0, 0))
    return folder


def needs(*commands: str) -> None:
    """Skip unless all these commands are there."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")


def typescript(cache: Path) -> list[str]:
    """How to run answer.ts; its packages are installed once and kept in pytest's cache."""
    needs("node", "npm")
    shutil.copy(PROGRAMS / "answer.ts", cache)
    wanted, installed = (PROGRAMS / "package.json").read_text(), cache / "package.json"
    if not ((cache / "installed").exists() and installed.read_text() == wanted):
        (cache / "installed").unlink(missing_ok=True)
        installed.write_text(wanted)
        _npm_install(cache)
        (cache / "installed").touch()
    return [str(cache / "node_modules" / ".bin" / "tsx"), str(cache / "answer.ts")]


def _npm_install(folder: Path) -> None:
    """Install what package.json asks for; skips the test without a network, and fails for anything else."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm install did not end within {INSTALL_S} s")
    if done.returncode and NO_NETWORK.search(done.stderr):
        pytest.skip(f"npm can't reach its registry: {done.stderr[:300]}")
    assert done.returncode == 0, done.stderr


def command_of(program: str, cache: Path) -> list[str]:
    """How to run a program; skips the test if what it needs is not installed."""
    if program == "answer.ts":
        return typescript(cache)
    path = str(PROGRAMS / program)
    if program == "answer.go":
        needs("go")
        return ["go", "run", path]
    if program == "answer.sh":
        needs("curl", "jq")
        return ["sh", path]
    return [sys.executable, path]


@pytest.mark.parametrize("name", MARKS)
def test_page_quotes_the_files(name: str):
    """What a reader sees is part of what runs below, to the letter; the shell's program is there in full."""
    quoted = re.findall(rf"^```{MARKS[name]}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    program = (PROGRAMS / name).read_text()
    assert quoted and all(block in program for block in quoted)
    assert name != "answer.sh" or program in quoted


def test_page_lists_the_refusal_codes():
    """A reader learns every code that can come back, and no other."""
    listed = PAGE.read_text().split("All codes:")[1].split(".")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == REFUSAL_CODES.keys()


@pytest.mark.parametrize("program", ["answer.sh", "answer.py", "answer.ts", "answer.go"])
def test_program_gets_a_session_done(server: Server, attic: Path, program: str, pytestconfig: pytest.Config):
    """Start, look, list, a refused answer, an accepted one, the same again, the result: in any language."""
    command = command_of(program, pytestconfig.cache.mkdir("other-languages"))
    session = f"docs-{uuid.uuid4().hex[:8]}"
    run = subprocess.run(
        [*command, str(attic), session], env=server.env, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    said = dict(re.findall(r"^(\w+):? (.*)$", run.stdout, re.MULTILINE))
    assert said["started"] == session and said["listed"].startswith(session)
    assert "delete_files" in said["asked"] and str(attic / "old.log") in said["asked"]
    assert "outdated" in said["refused"] and "look again" in said["refused"]
    assert "janitor-approval" in said["accepted"] and said["again"] == said["accepted"]
    assert "end_turn" in said["result"]
    assert not (attic / "old.log").exists()


def test_bot_answers_two_agents_on_their_own_queues(server: Server, attic: Path, tmp_path: Path):
    """It finds both, approves the one and denies the other, and their sessions run where each agent is served."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "old.txt").write_text("old")
    os.utime(kept / "old.txt", (0, 0))
    base = f"bot-{uuid.uuid4().hex[:8]}"
    worker = WorkerProcess(server.env["TEMPORAL_ADDRESS"], "examples.janitor", tmp_path, base, "--queue-per-agent")
    try:
        worker.start()
        run = subprocess.run(
            [sys.executable, str(PROGRAMS / "bot.py"), str(attic), str(kept)],
            env={**server.env, "COUNTERSIGN_TASK_QUEUE": base + "-{agent}"},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
    finally:
        worker.kill()
    assert run.returncode == 0, run.stdout + run.stderr
    assert "by approve" in run.stdout and "by deny" in run.stdout
    assert f"end_turn on {base}-janitor\n" in run.stdout and f"end_turn on {base}-janitor-batch\n" in run.stdout
    assert not (attic / "old.log").exists() and (kept / "old.txt").exists()


class Answered:
    """A session that asks until it is answered; one that can't be read if `unreadable`."""

    def __init__(self, session_id: str, unreadable: bool) -> None:
        self.id = self.session_id = session_id
        self._fault = SessionUnreadableError(session_id, "no key") if unreadable else None
        self._done = asyncio.Event()

    async def interrupts(self) -> list[SimpleNamespace]:
        """The one question, without a call that could be allowed."""
        if self._fault:
            raise self._fault
        return [SimpleNamespace(id="q", calls=[], digest="d")]

    async def deny(self, *_: Any, **__: Any) -> SimpleNamespace:
        """Take it."""
        self._done.set()
        return SimpleNamespace(accepted=[SimpleNamespace(name="q", status="accepted")])

    async def result(self) -> SimpleNamespace:
        """Its end."""
        if self._fault:
            raise self._fault
        await self._done.wait()
        return SimpleNamespace(stop_reason="end_turn")

    async def summary(self) -> SimpleNamespace:
        """What the bot prints of it."""
        return SimpleNamespace(task_queue="q")


async def test_bot_goes_on_when_one_session_cannot_be_read(monkeypatch, capsys):
    """As after a new key, if it was not restarted: it says so and answers the others."""
    spec = importlib.util.spec_from_file_location("bot", PROGRAMS / "bot.py")
    bot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bot)
    sessions = {name: Answered(name, name == "janitor") for name in bot.AGENTS}

    class Client:
        """All sessions wait, whichever agent is asked for."""

        async def start(self, agent: str, *_: Any) -> Answered:
            return sessions[agent]

        async def waiting(self, agent: str) -> AsyncIterator[Answered]:
            for session in sessions.values():
                yield session

        def session(self, session_id: str) -> Answered:
            return sessions[session_id]

    async def connect() -> Client:
        return Client()

    monkeypatch.setattr(bot.AgentClient, "connect", connect)
    await bot.main("a", "b")
    *_, unread, answered = capsys.readouterr().out.splitlines()
    assert (unread, answered) == (
        "janitor: session 'janitor' can't be read here: no key",
        "janitor-batch: end_turn on q",
    )


@pytest.mark.parametrize(
    ("media_type", "recorded"),
    [("application/json", [None, 12345678901234567000]), (EXACT, [[], 12345678901234567890])],
)
def test_shorthand_of_the_http_api_changes_some_values(
    server: Server, attic: Path, media_type: str, recorded: list[Any]
):
    """The page's warning is true: an empty list and a long number only survive without the shorthand."""
    path = f"/workflows/docs-{uuid.uuid4().hex[:8]}"
    start = {"agent": "janitor", "prompt": f"Delete files older than 5 days in {attic}"}
    names = {"workflowType": {"name": "AgentSession"}, "taskQueue": {"name": server.queue}}
    server.request(path, {**names, "input": [start]})
    [question] = until(lambda: server.request(f"{path}/query/interrupts", {})["queryResult"][0])
    answer = {"interruptResponse": {"interruptId": question["id"], "response": [[], 12345678901234567890]}}
    sent = [answer] if media_type != EXACT else {"payloads": [_payload(answer)]}
    server.request(f"{path}/signal/respond", {"input": sent}, media_type)
    audit = until(lambda: [line for line in _audit(server, path) if line["event"] == "answered"])
    assert audit[0]["detail"]["answer"]["response"] == recorded


def _payload(value: Any) -> dict[str, Any]:
    encoding = base64.b64encode(b"json/plain").decode()
    return {"metadata": {"encoding": encoding}, "data": base64.b64encode(json.dumps(value).encode()).decode()}


def _audit(server: Server, path: str) -> list[dict[str, Any]]:
    """The audit trail, read without the shorthand."""
    [payload] = server.request(f"{path}/query/audit", {}, EXACT)["queryResult"]["payloads"]
    return json.loads(base64.b64decode(payload["data"]))
