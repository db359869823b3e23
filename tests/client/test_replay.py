"""`countersign replay`: what would break is said before a deployment, and nothing else."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionInfo, WorkflowExecutionVersioningInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from tests.support.shop import AFTER, BEFORE, CHANGES, HARMLESS, SHOP, agent

from countersign import Agent
from countersign.agent_client.errors import ClientError
from countersign.agent_client.replay_causes import causes
from countersign.agent_client.replay_findings import Finding, difference, session_findings
from countersign.agent_client.replay_histories import read_history
from countersign.agent_client.replaying import pinned_build
from countersign.agent_client.shell import command
from countersign.agent_core.deployment import AgentDeployment, load_agents
from countersign.agent_core.interrupts import question_id
from countersign.agent_core.session import SessionState
from countersign.agent_core.wire import Pending, Question, ShownCall
from countersign.workflows.replayed import Started

ROOT = Path(__file__).parents[2]


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


async def test_what_it_says_of_waiting_sessions_is_what_happens(lab):
    """Other hooks do no harm; a tool, a parameter, an agent or a class that is gone is named, and nothing runs."""
    lab.package("shop", agents=BEFORE)
    worker = lab.worker("shop.agents")
    sessions = {name: await lab.start(worker, name, f"{lab.folder / name}.log 0") for name in CHANGES}
    asked = {name: (await session.wait_for_questions())[0] for name, session in sessions.items()}
    lab.package("shop", agents=AFTER)
    named = [word for session in sessions.values() for word in ("--session", session.id)]
    code, found = await asyncio.to_thread(replayed, lab.folder, *named, "--address", lab.address)
    said = {one["agent"]: [finding["kind"] for finding in one["findings"]] for one in found["replayed"]}
    assert said == {name: kinds for name, (_, kinds, _) in CHANGES.items()}
    broken = {one["agent"] for one in found["replayed"] if one["breaks"]}
    assert (code, broken) == (1, {name for name, (_, kinds, _) in CHANGES.items() if set(kinds) - HARMLESS})

    worker.restart()
    for name, session in sessions.items():
        await session.respond((asked[name].id, "y"))
    for name, (_, _, words) in CHANGES.items():
        await settled(sessions[name], asked[name].id)
        last = [json.dumps(message) async for message in sessions[name].transcript()]
        assert words is None or words in "".join(last), name
        assert (lab.folder / f"{name}.log").exists() == (words == "paid"), name
        assert bool(await sessions[name].interrupts()) == (words is None), name


async def settled(session, question: str) -> None:
    """Wait until the session has ended, or waits for the answer to another question."""
    async with asyncio.timeout(60):
        while (await session.status())["status"] != "closed":
            if {one.id for one in await session.interrupts()} - {question}:
                return
            await asyncio.sleep(0.05)


def test_a_session_manager_of_the_agent_is_not_touched(tmp_path, monkeypatch):
    """Looking changes nothing: what an agent keeps in-process is neither restored nor written."""
    folder = str(tmp_path / "kept")
    (tmp_path / "kept_agents.py").write_text(
        "from countersign import Agent, ScriptedModel, durable\n"
        "from countersign.session import FileSessionManager\n"
        "@durable('kept')\n"
        "def kept():\n"
        f"    return Agent(ScriptedModel(['hi']), session_manager=FileSessionManager('s', {folder!r}))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert session_findings(SessionState(session_id="s", agent="kept"), load_agents(["kept_agents"])) == []
    assert not Path(folder).exists()


def test_a_history_from_a_file_needs_no_server():
    """Whoever has one from `temporal workflow show` may replay it anywhere; its session is named."""
    history = next((ROOT / "tests" / "replay" / "histories").rglob("twice.json"))
    code, found = replayed(ROOT, "--history", str(history), modules="tests.durable.lab.agents")
    assert (code, [one["workflow_id"] for one in found["replayed"]]) == (0, ["recorded-twice"])


def test_modules_come_from_the_environment_as_for_a_worker_and_hooks_are_said_not_to_be_heard():
    """What a replay can't tell stands in its output, for people and for programs."""
    history = next((ROOT / "tests" / "replay" / "histories").rglob("twice.json"))
    command = [sys.executable, "-c", "from countersign.agent_client.cli import main; main()", "replay"]
    environment = {**os.environ, "COUNTERSIGN_AGENTS": "tests.replay.agents"}
    for words in ([], ["--json"]):
        done = subprocess.run(
            [*command, "--history", str(history), *words], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "what hooks and handlers will decide" in done.stdout


async def test_open_sessions_of_a_queue_and_their_cycles_are_fetched(lab):
    """A cycle that runs is replayed under the new policy; what differs is named with the line that does it."""
    lab.package("shop", agents=SHOP + agent("shop") + agent("quick", hooks="Counts()"))
    worker = lab.worker("shop.agents")
    waiting = await lab.start(worker, "shop", f"{lab.effects_file} 0")
    await waiting.wait_for_questions()
    running = await lab.start(worker, "quick", f"{lab.effects_file} 300")
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


PINNED, UPGRADED = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED, VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
OLD = WorkerDeploymentVersion(deployment_name="agents", build_id="old")
TO_OLD = VersioningOverride(pinned=VersioningOverride.PinnedOverride(version=OLD))


@pytest.mark.parametrize(
    ("info", "build"),
    [
        (WorkflowExecutionVersioningInfo(), ""),
        (WorkflowExecutionVersioningInfo(behavior=UPGRADED, deployment_version=OLD), ""),
        (WorkflowExecutionVersioningInfo(behavior=PINNED, deployment_version=OLD), "agents:old"),
        (WorkflowExecutionVersioningInfo(behavior=UPGRADED, versioning_override=TO_OLD), "agents:old"),
        (
            WorkflowExecutionVersioningInfo(
                behavior=PINNED, deployment_version=OLD, versioning_override=VersioningOverride(auto_upgrade=True)
            ),
            "",
        ),
    ],
)
def test_an_override_counts_before_a_behaviour(info, build):
    """What an operator pinned or freed by hand is not what the worker said."""
    execution = WorkflowExecutionInfo(versioning_info=info)
    raw = DescribeWorkflowExecutionResponse(workflow_execution_info=execution)
    assert pinned_build(SimpleNamespace(raw_description=raw)) == build


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON", "can't be read as a history (JSONDecodeError"),
        ('{"events": [{"eventId": "x"}]}', "can't be read as a history (ParseError"),
        ('{"events": []}', "is of workflow type ''"),
    ],
)
def test_a_file_that_is_no_history_is_named(tmp_path, text, said):
    """With the file, and the command that writes one."""
    file = tmp_path / "ada.json"
    file.write_text(text)
    with pytest.raises(ClientError, match="ada") as raised:
        read_history(file)
    assert said in str(raised.value)


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


def test_one_cause_in_many_sessions_is_told_once():
    """With the ids beside it, and ID where the commands and the words differ in nothing else."""
    gone = Finding("agent-missing", "breaks", "its agent 'a' is gone")
    names = ("s-1", "s 2", "s-3", "s-4", "s-5", "s-6")
    [cause] = causes((name, replace(gone, advice=f"end it: {command('stop', name, '--close')}")) for name in names)
    assert cause.where == "6 of them (s-1, s 2, s-3, s-4, s-5, and 1 more)"
    assert cause.finding.advice == "end it: countersign stop ID --close"


def test_questions_of_one_kind_are_one_cause():
    """Their ids are no difference, and not whether the question is about one call or the whole batch."""
    ids = [question_id("s", 1, index, "hook", "may-i", 0) for index in (0, 12, None)]
    asked = [f"question 'may-i' ({interrupt_id}) is about the tool 'pay'" for interrupt_id in ids]
    [cause] = causes((f"s-{what}", Finding("tool-missing", "breaks", what)) for what in asked)
    assert cause.finding.what == "question 'may-i' (ID) is about the tool 'pay'"


def test_two_questions_of_one_session_are_told_both():
    """Each with its id: a person has to answer both."""
    asked = [f"question 'may-i' (int-1-0-{number:016x}) is about the tool 'pay'" for number in (1, 2)]
    found = causes(("s-1", Finding("tool-missing", "breaks", what)) for what in asked)
    assert [cause.finding.what for cause in found] == asked


def test_every_question_of_a_call_is_told_the_open_ones_first():
    """A call may be asked about by several; an answer that it has already is no reason to keep quiet about the rest."""
    call = ShownCall(index=0, tool_use_id="t", tool="gone", input={})
    first, second = (Question(id=f"int-1-0-{n:016x}", name="ok", digest="d", calls=[call], index=0) for n in (1, 2))
    first.status = "answered"
    pending = Pending(origin_cycle=1, message={"role": "assistant", "content": []}, questions=[first, second])
    state = SessionState(session_id="s", agent="payer", pending=pending)
    deployment = AgentDeployment("payer", "module", Agent, Agent())
    found = session_findings(state, {"payer": deployment})
    assert [finding.kind for finding in found] == ["tool-missing"] * 2
    assert [finding.what.partition(" is about")[0] for finding in found] == [
        f"question 'ok' ({second.id})",
        f"question 'ok' ({first.id}, answered)",
    ]


def test_a_cause_that_was_met_once_keeps_its_ids():
    """Its command can be pasted."""
    one, other = Finding("agent-missing", "breaks", "gone", "stop s-1"), Finding("pinned", "notice", "pinned")
    found = causes([("s-1", one), ("s-1", other)])
    assert [(cause.where, cause.finding) for cause in found] == [("s-1", one), ("s-1", other)]
