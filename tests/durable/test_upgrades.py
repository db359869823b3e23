"""Deployments on a real server: sessions follow the current build, cycles end on their own."""

import asyncio
import json
import subprocess
import sysconfig
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.service import RPCError
from tests.client.test_replay import replayed
from tests.conftest import Lab, WorkerProcess
from tests.durable.test_waiting import questions

from countersign.client import NoWorkerError

BIN = Path(sysconfig.get_path("scripts"))

POLICY = '''
import time
from pathlib import Path
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls

BUILD = "{build}"

@tool
def effect(folder: str) -> str:
    """Do it, once the file `go` is there."""
    Path(folder, "began").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.02)
    return f"tool of {{BUILD}}"

def script(scene):
    if len(scene.turn) > 1:
        return scene.messages[-1]["content"][0]["toolResult"]["content"][0]["text"] + f", model of {{BUILD}}"
    return calls(("effect", {{"folder": scene.prompt}}))

def ask(event: BeforeToolCallEvent) -> None:
    event.agent.state.set("policy", BUILD)
    if event.interrupt("may-i") != "y":
        event.cancel_tool = "no"

@durable("asks")
def asks() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[effect], hooks=[ask])

@durable("runs")
def runs() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[effect])
'''


@dataclass
class Deployment:
    """Builds of one deployment on one queue."""

    lab: Lab
    client: Client
    name: str
    queue: str

    def worker(self, build: str, versioned: bool = True) -> WorkerProcess:
        """Start a worker of a build, with that build's policy."""
        self.lab.package("rolled", agents=POLICY.format(build=build))
        flags = ("--deployment-name", self.name, "--build-id", build) if versioned else ()
        return self.lab.worker("rolled.agents", self.queue, *flags)

    @property
    def flag(self) -> str:
        """As a worker of it takes it."""
        return f"--deployment-name {self.name}"

    async def make_current(self, build: str) -> None:
        """Make a build current, or, with "", whatever is not versioned.

        The server learns of a build by its first poll: until then it refuses.
        """
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=self.client.namespace, deployment_name=self.name, build_id=build
        )
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.client.workflow_service.set_worker_deployment_current_version(request)
                    return
                except RPCError:
                    await asyncio.sleep(0.1)

    async def build_of(self, workflow_id: str) -> str:
        """The build on which a workflow ran last."""
        seen = await self.client.get_workflow_handle(workflow_id).describe()
        return seen.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id


@pytest.fixture
def deployment(lab, client):
    """A deployment without a build."""
    unique = uuid.uuid4().hex[:8]
    return Deployment(lab, client, f"rolled-{unique}", f"q-{unique}")


def go(lab) -> None:
    (lab.folder / "go").touch()


async def began(lab) -> None:
    """Wait until the tool runs."""
    async with asyncio.timeout(60):
        while not (lab.folder / "began").exists():
            await asyncio.sleep(0.05)


async def test_waiting_sessions_follow_the_current_build_forward_and_back(lab, deployment):
    """Asked under build 1: one goes on with build 2's policy, the other, after a rollback, with build 1's."""
    go(lab)
    first = deployment.worker("b1")
    await deployment.make_current("b1")
    forward, back = [await lab.start(first, "asks", str(lab.folder)) for _ in range(2)]
    answers = [(await questions(session, 1))[0] for session in (forward, back)]
    deployment.worker("b2")
    await deployment.make_current("b2")
    await forward.answer((answers[0].id, "y"))
    result = await forward.result()
    assert (result.state, result.message["content"][0]["text"]) == ({"policy": "b2"}, "tool of b2, model of b2")
    await deployment.make_current("b1")
    await back.answer((answers[1].id, "y"))
    result = await back.result()
    assert (result.state, result.message["content"][0]["text"]) == ({"policy": "b1"}, "tool of b1, model of b1")


async def test_a_cycle_that_runs_ends_on_the_build_on_which_it_began(lab, deployment):
    """Its session's next cycle runs on the build that became current; `countersign replay` knows of the pin."""
    first = deployment.worker("b1")
    await deployment.make_current("b1")
    session = await lab.start(first, "runs", str(lab.folder), handover_after_s=0)
    await began(lab)
    deployment.worker("b2")
    code, found = await asyncio.to_thread(
        replayed, lab.folder, "--session", session.id, "--address", lab.address, modules="rolled.agents"
    )
    assert (code, [finding["kind"] for one in found["replayed"] for finding in one["findings"]]) == (0, ["pinned"])
    await deployment.make_current("b2")
    go(lab)
    result = await session.result()
    assert result.message["content"][0]["text"] == "tool of b1, model of b2"
    cycles = [await deployment.build_of(f"{session.id}/cycle-{number}") for number in (1, 2)]
    assert cycles == ["b1", "b2"]


async def test_sessions_move_to_versioned_builds_and_back(lab, deployment):
    """Begun before anything was versioned, asked there, answered on a build; the other way round, too."""
    go(lab)
    plain = deployment.worker("plain", versioned=False)
    there = await lab.start(plain, "asks", str(lab.folder))
    [first] = await questions(there, 1)
    plain.stop()
    built = deployment.worker("b1")
    await deployment.make_current("b1")
    await there.answer((first.id, "y"))
    assert (await there.result()).state == {"policy": "b1"}
    back = await lab.start(built, "asks", str(lab.folder))
    [second] = await questions(back, 1)
    built.stop()
    deployment.worker("plain-again", versioned=False)
    await deployment.make_current("")
    await back.answer((second.id, "y"))
    assert (await back.result()).state == {"policy": "plain-again"}


async def test_a_cycle_whose_build_is_gone_is_told_and_can_be_freed(lab, deployment):
    """The next worker and `doctor` name the cycle and the command; with that, its session goes on."""
    first = deployment.worker("b1")
    await deployment.make_current("b1")
    session = await lab.start(first, "runs", str(lab.folder))
    await began(lab)
    first.stop()
    second = deployment.worker("b2")
    await deployment.make_current("b2")
    cycle = f"{session.id}/cycle-1"
    async with asyncio.timeout(60):
        while "lost build" not in (checks := await asyncio.to_thread(examined, lab, deployment.queue)):
            await asyncio.sleep(0.2)
    found = checks["lost build"]
    assert (found["level"], cycle in found["found"]) == ("failure", True)
    second.restart()
    async with asyncio.timeout(60):
        while f"--workflow-id {cycle} --versioning-override-behavior auto_upgrade" not in second.said():
            await asyncio.sleep(0.05)
    command = found["advice"].partition("take over: ")[2].replace("temporal ", f"{BIN}/temporal ", 1)
    subprocess.run([*command.split(), "--address", lab.address], check=True, capture_output=True)
    [question] = await questions(session, 1)
    assert question.name == "unknown-outcome"
    await session.answer((question.id, {"result": "it had run"}))
    assert (await session.result()).message["content"][0]["text"] == "it had run, model of b2"


async def test_where_a_build_is_current_only_a_versioned_worker_is_advised(lab, deployment):
    """One without a version says at its start that it gets no work; commands give the flags of the current build."""
    first = deployment.worker("b1")
    await deployment.make_current("b1")
    session = await lab.start(first, "asks", str(lab.folder))
    await questions(session, 1)
    first.stop()
    plain = deployment.worker("plain", versioned=False)
    async with asyncio.timeout(60):
        while f"this worker has no version and gets no work there; start it with {deployment.flag}" not in plain.said():
            await asyncio.sleep(0.05)
    checks = await asyncio.to_thread(examined, lab, deployment.queue)
    server = f"--address {lab.address} "
    assert f"--task-queue {deployment.queue} {server}{deployment.flag} --build-id b1" in checks["sessions"]["advice"]
    with pytest.raises(NoWorkerError, match=f"--task-queue {deployment.queue} {deployment.flag} --build-id b1$"):
        await session.status()


async def test_an_unversioned_cycle_is_taken_over_by_other_code(lab, deployment):
    """Code that asks for the same in the same order goes on in mid-cycle; the call that was cut off is asked about."""
    first = deployment.worker("b1", versioned=False)
    session = await lab.start(first, "runs", str(lab.folder))
    await began(lab)
    first.stop()
    deployment.worker("b2", versioned=False)
    [question] = await questions(session, 1)
    assert question.name == "unknown-outcome"
    await session.answer((question.id, {"result": "it had run"}))
    assert (await session.result()).message["content"][0]["text"] == "it had run, model of b2"
    assert [line.event for line in await session.audit() if line.event == "cycle_failed"] == []


def examined(lab, queue: str) -> dict[str, dict]:
    """The checks of `countersign doctor`, by name."""
    done = subprocess.run(
        [BIN / "countersign", "doctor", "--json", "--address", lab.address, "--task-queue", queue],
        capture_output=True,
        text=True,
        check=False,
    )
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}
