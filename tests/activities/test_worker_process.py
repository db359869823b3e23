"""The worker as a process: its settings, its complaints, and versioned builds."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.common import VersioningBehavior
from temporalio.service import RPCError
from tests.conftest import ROOT


def complaint(*flags: str, **variables: str) -> str:
    """What a worker that must not start says."""
    command = [sys.executable, "-m", "countersign.worker", *flags]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COUNTERSIGN_", "TEMPORAL_"))
    }
    ended = subprocess.run(
        command, cwd=ROOT, env={**environment, **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    return ended.stderr


NOBODY = ("--address", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "--agents"),
        (("--agents", " , "), "--agents"),
        (("--agents", "examples.janitor", "--log-level", "loud"), "--log-level"),
        (("--agents", "examples.janitor", "--task-queue", ""), "--task-queue"),
        (("--agents", "examples.janitor", "--build-id", "1"), "--deployment-name"),
        (("--agents", "examples.janitor", "--tools-only", "--task-queue", "q-{agent}"), "--tools-only"),
        (("--agents", "examples.janitor", "--tools-only", "--task-queue", "pay"), "@tool(queue='pay')"),
        (("--agents", "examples.janitor", "--metrics-address", "here"), "--metrics-address"),
        (("--agents", "examples.janitor", "--metrics-address", "999.1.1.1:1"), "999.1.1.1:1"),
        (("--agents", "examples.janitor", "--health-host", "192.0.2.1", "--health-port", "1"), "192.0.2.1:1"),
        (("--agents", "no.such_module"), "no.such_module"),
        (("--agents", "examples"), "registers no agent"),
        (("--agents", "examples.janitor", *NOBODY), "127.0.0.1:1"),
        (("--agents", "examples.janitor", "--storage", "/var/lib/store"), "--storage"),
        (("--agents", "examples.janitor", "--encryption-keys", "/no/such"), "/no/such"),
    ],
)
def test_a_worker_that_can_not_serve_says_why_in_one_line(flags, words):
    """Exit code 2, no traceback, and the flag, module or address by name."""
    assert words in complaint(*flags)


BREAKS_DOWN = """
import threading
from countersign import worker

async def broken(settings, deployments):
    threading.Thread(target=threading.Event().wait).start()  # a tool that outlives its worker
    raise RuntimeError("the worker broke down")

worker.serve = broken
worker.main()
"""


def test_a_worker_that_breaks_down_ends_although_a_tool_runs():
    """It would neither serve nor end otherwise, and nothing would start another one."""
    command = [sys.executable, "-c", BREAKS_DOWN, "--agents", "examples.janitor"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "RuntimeError: the worker broke down" in ended.stderr


STUBBORN = """
import asyncio
from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import calls

@tool
async def stubborn() -> str:
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass

@durable("stubborn")
def agent():
    return Agent(model=ScriptedModel([calls(("stubborn", {}))]), tools=[stubborn])
"""


async def test_a_worker_ends_although_a_tool_ignores_its_cancellation(lab):
    """It says which one; else it would neither serve nor end, until somebody kills it."""
    lab.package("stays", agents=STUBBORN)
    worker = lab.worker("stays.agents", None, "--graceful-shutdown-s", "0")
    await lab.start(worker, "stubborn", "go")
    async with asyncio.timeout(60):
        while "begun" not in worker.said():
            await asyncio.sleep(0.05)
    process = worker.process
    await asyncio.to_thread(worker.stop)
    assert process.returncode == 0
    assert "these go on after they were cancelled, and what they did is unknown: stubborn" in worker.said()


SLOW_IMPORT = "import threading\nprint('importing', flush=True)\nthreading.Event().wait()"


def test_a_worker_that_still_imports_ends_at_once_when_told_to(tmp_path):
    """As the first process of a container, too, where a signal that nobody asked for is lost."""
    (tmp_path / "slow_agents.py").write_text(SLOW_IMPORT)
    command = [sys.executable, "-m", "countersign.worker", "--agents", "slow_agents"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"importing\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143


def test_a_missing_namespace_is_named(temporal_server):
    """Found before anything polls."""
    assert "'nope'" in complaint("--agents", "examples.janitor", "--address", temporal_server, "--namespace", "nope")


def test_a_store_that_can_not_be_used_is_named(temporal_server):
    """Before the first large value needs it."""
    flags = ("--agents", "examples.janitor", "--address", temporal_server)
    assert "file:///proc/nothing can't be used" in complaint(*flags, "--storage", "file:///proc/nothing")


def test_agents_come_from_the_environment_too():
    """With commas, and without JSON."""
    said = complaint(*NOBODY, COUNTERSIGN_AGENTS="examples.janitor,no.such_module")
    assert "no.such_module" in said
    assert "127.0.0.1:1" in complaint(*NOBODY, COUNTERSIGN_AGENTS="examples.janitor")


async def test_a_versioned_worker_upgrades_sessions_and_pins_cycles(lab, client):
    """It says that its build is not current, and when it is; a turn then runs with the right behaviours."""
    worker = lab.worker("lab.agents", None, "--deployment-name", f"d-{os.getpid()}", "--build-id", "b1")
    async with asyncio.timeout(60):
        while "set-current-version" not in worker.said():
            await asyncio.sleep(0.05)
        while True:  # the server learns of a build by its first poll
            try:
                await client.workflow_service.set_worker_deployment_current_version(
                    SetWorkerDeploymentCurrentVersionRequest(
                        namespace="default", deployment_name=f"d-{os.getpid()}", build_id="b1"
                    )
                )
                break
            except RPCError:
                await asyncio.sleep(0.1)
    session = await lab.start(worker, "free", f"effects={lab.effects_file} effect:a")
    async with asyncio.timeout(60):
        assert (await session.result()).stop_reason == "end_turn"
        while "build b1 is now the current one of deployment d-" not in worker.said():
            await asyncio.sleep(0.05)
    behaviors = [await behavior_of(client, name) for name in (session.id, f"{session.id}/cycle-1")]
    assert behaviors == [VersioningBehavior.AUTO_UPGRADE, VersioningBehavior.PINNED]


async def behavior_of(client, workflow_id: str) -> VersioningBehavior:
    described = await client.get_workflow_handle(workflow_id).describe()
    return VersioningBehavior(described.raw_description.workflow_execution_info.versioning_info.behavior)
