"""`countersign replay`: what would break is said before a deployment, and nothing else."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.agent_client.replay_findings import difference
from countersign.workflows.replayed import Started

ROOT = Path(__file__).parents[2]

SHOP = '''
import time
from pathlib import Path
from countersign import Agent, ScriptedModel, durable, step, tool
from countersign.hooks import BeforeModelCallEvent, BeforeToolCallEvent, HookProvider
from countersign.models import calls

@tool
def pay(log: str, seconds: float) -> str:
    """Pay."""
    with Path(log).open("a") as file:
        file.write("began\\n")
    time.sleep(seconds)
    return "paid"

@tool(name="pay")
def pay_why(log: str, seconds: float, why: str) -> str:
    """Pay, with a new parameter."""
    return why

@tool(name="pay")
def pay_perhaps_why(log: str, seconds: float, why: str = "") -> str:
    """Pay, with a new parameter that has a default."""
    return why

@step
async def may() -> bool:
    return True

def script(scene):
    if len(scene.turn) > 1:
        return "done"
    log, seconds = scene.prompt.split()
    return calls(("pay", {"log": log, "seconds": float(seconds)}))

class Counts(HookProvider):
    def __init__(self):
        self.start()

    def start(self):
        self.seen = 0

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeModelCallEvent, self.count)
        registry.add_callback(BeforeToolCallEvent, self.look)

    def count(self, event):
        self.seen += 1

    def look(self, event):
        pass

class Asks(Counts):
    def look(self, event):
        if event.interrupt("may-i") != "y":
            event.cancel_tool = "no"

class Inquires(Asks):
    pass

class Fixed(Asks):
    pass

class Looks(Counts):
    async def look(self, event):
        await may()
'''
READ_ONLY = """
class Fixed(Asks):
    seen = property(lambda self: 0)

    def start(self):
        pass
"""
AGENT = """
@durable("{name}")
def {name}() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[{tools}], hooks=[{hooks}])
"""


def agent(name: str, tools: str = "pay", hooks: str = "Asks()") -> str:
    return AGENT.format(name=name, tools=tools, hooks=hooks)


def replayed(folder: Path, *words: str, modules: str = "shop.agents") -> tuple[int, dict]:
    """Exit code and JSON of the command, run in a folder as a person would."""
    command = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "replay", "--json"]
    done = subprocess.run(
        [*command, "--agents", modules, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout or done.stderr.startswith('{"error"'), done.stderr
    return done.returncode, json.loads(done.stdout or done.stderr)


async def waiting(lab, worker, *agents: str) -> dict[str, str]:
    """A session of each agent that waits for an answer: agent by session id."""
    sessions = [await lab.start(worker, name, f"{lab.effects_file} 0") for name in agents]
    for session in sessions:
        await session.wait_for_questions()
    return {session.id: name for session, name in zip(sessions, agents, strict=True)}


CHANGES = {
    "another_hook": (agent("another_hook", hooks="Asks(), Looks()"), []),
    "no_tool": (agent("no_tool", tools=""), ["tool-missing"]),
    "parameter": (agent("parameter", tools="pay_why"), ["input-refused"]),
    "default": (agent("default", tools="pay_perhaps_why"), ["asked-again"]),
    "gone": ("", ["agent-missing"]),
    "read_only": (READ_ONLY + agent("read_only", hooks="Fixed()"), ["handler-state"]),
    "renamed_hook": (agent("renamed_hook", hooks="Inquires()"), ["handler-unknown"]),
}
HARMLESS = {"asked-again", "handler-unknown"}


async def test_what_waiting_sessions_mind_and_what_not(lab):
    """Other hooks, no. A tool, a parameter or an agent that is gone: each is named with its session."""
    fixed = agent("read_only", hooks="Fixed()")
    lab.package("shop", agents=SHOP + "".join(map(agent, CHANGES)).replace(agent("read_only"), fixed))
    worker = lab.worker("shop.agents")
    sessions = await waiting(lab, worker, *CHANGES)
    lab.package("shop", agents=SHOP + "".join(source for source, _ in CHANGES.values()))
    named = [word for session_id in sessions for word in ("--session", session_id)]
    code, found = await asyncio.to_thread(replayed, lab.folder, *named, "--address", lab.address)
    kinds = {
        sessions[one["workflow_id"]]: [finding["kind"] for finding in one["findings"]] for one in found["replayed"]
    }
    assert kinds == {name: expected for name, (_, expected) in CHANGES.items()}
    assert {one["agent"] for one in found["replayed"] if one["breaks"]} == {
        name for name, (_, expected) in CHANGES.items() if set(expected) - HARMLESS
    }
    assert code == 1


def test_a_history_from_a_file_needs_no_server():
    """Whoever has one from `temporal workflow show` may replay it anywhere; its session is named."""
    history = next((ROOT / "tests" / "replay" / "histories").rglob("twice.json"))
    code, found = replayed(ROOT, "--history", str(history), modules="tests.durable.lab.agents")
    assert (code, [one["workflow_id"] for one in found["replayed"]]) == (0, ["recorded-twice"])


async def test_open_sessions_of_a_queue_and_their_cycles_are_fetched(lab):
    """A cycle that runs is replayed under the new policy; what differs is named with the line that does it."""
    lab.package("shop", agents=SHOP + agent("shop") + agent("quick", hooks="Counts()"))
    worker = lab.worker("shop.agents")
    await waiting(lab, worker, "shop")
    running = await lab.start(worker, "quick", f"{lab.effects_file} 60")
    async with asyncio.timeout(60):
        while lab.effects() != ["began"]:
            await asyncio.sleep(0.05)
    lab.package("shop", agents=SHOP + agent("shop") + agent("quick", hooks="Looks()"))
    queue = ("--address", lab.address, "--task-queue", worker.queue)
    async with asyncio.timeout(60):  # Temporal's list follows after a moment
        while True:
            code, found = await asyncio.to_thread(replayed, lab.folder, *queue)
            if len(found["replayed"]) == 3:
                break
    broken = {one["workflow_id"]: one["findings"] for one in found["replayed"] if one["breaks"]}
    assert code == 1
    assert list(broken) == [f"{running.id}/cycle-1"]
    [finding] = broken[f"{running.id}/cycle-1"]
    assert finding["kind"] == "nondeterminism"
    assert "the history has pay where this code starts step shop.agents:may" in finding["what"]
    assert "Looks.look in agents.py, line " in finding["what"]


def test_code_that_no_worker_could_serve_breaks_everything(tmp_path):
    """An import error is exit code 1 and one sentence, before any server is asked."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "agents.py").write_text("import nothing_of_that_name\n")
    code, found = replayed(tmp_path, "--history", "unused.json")
    assert code == 1
    assert "nothing_of_that_name" in found["error"]["message"]


@pytest.mark.parametrize(
    ("before", "now", "ended", "said"),
    [
        (["a", "b"], ["a", "b"], "", ""),
        (["a", "b"], ["a"], "", ""),
        (["a"], ["a", "b"], "", "this code starts b, which the history does not have there"),
        (["a", "b"], ["a", "c"], "", "the history has b where this code starts c"),
        (["a", "b"], ["a"], "failed (E: no)", "the history goes on with b, this code ends: failed (E: no)"),
    ],
)
def test_the_first_difference_counts(before, now, ended, said):
    """What comes after it is its consequence."""
    assert difference(before, [Started(label) for label in now], ended) == said
