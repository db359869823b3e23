"""A fleet of workers: queues of agents and of tools, their bounds, and what is seen of them."""

import asyncio
import json
import uuid
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_upgrades import Deployment
from tests.durable.test_waiting import questions
from typer.testing import CliRunner

from countersign.agent_client import diagnosis
from countersign.agent_client.cli import app
from countersign.agent_client.first_cycle import trouble_at_start
from countersign.agent_client.workers import pollers
from countersign.client import AgentClient


@pytest.fixture
def tool_queue(monkeypatch) -> str:
    """The queue of the tool `pay` in the workers that this test starts."""
    name = f"tools-{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("FLEET_QUEUE", name)
    return name


def doctor(lab, *words: str) -> dict[str, dict[str, str]]:
    """The checks of `countersign doctor`, by name; of several queues, what was found at all of them."""
    got = CliRunner().invoke(app, ["doctor", "--json", "--address", lab.address, *words])
    by_name: dict[str, dict[str, str]] = {}
    for check in json.loads(got.stdout)["checks"]:
        before = by_name.get(check["name"], {"found": ""})["found"]
        by_name[check["name"]] = {**check, "found": f"{before} {check['found']}"}
    return by_name


async def test_a_call_waits_for_the_workers_of_its_tool_and_runs_there(lab, tool_queue):
    """While there are none it waits, and worker and doctor say so with the command that helps; then it runs once."""
    agents = lab.worker("lab.fleet")
    session = await lab.start(agents, "payer", f"{lab.effects_file} 0")
    async with asyncio.timeout(60):
        while "calls that wait" not in (checks := await asyncio.to_thread(doctor, lab, "--task-queue", agents.queue)):
            await asyncio.sleep(0.1)
    check = checks["calls that wait"]
    assert (check["level"], "1 call (pay)" in check["found"]) == ("failure", True)
    command = f"python -m countersign.worker --tools-only --task-queue {tool_queue}"
    assert command in check["advice"] and command in agents.said()
    tools = lab.worker("lab.fleet", tool_queue, "--tools-only")
    assert (await session.result()).message["content"][0]["text"] == "seen paid"
    assert sorted(lab.effects()) == [f"looked-by-{agents.process.pid}", f"paid-by-{tools.process.pid}"]
    assert await pollers((await lab.client(agents)).temporal, tool_queue, "workflow") == []


async def test_a_call_of_a_pinned_cycle_needs_a_tool_worker_of_its_build(lab, client, tool_queue, monkeypatch):
    """`doctor` fails for it, whoever of another build polls that queue; of its own build, nobody has for long."""
    rolled = Deployment(lab, client, f"fleet-{uuid.uuid4().hex[:8]}", "")
    builds = {name: ("--deployment-name", rolled.name, "--build-id", name) for name in ("b1", "b2")}
    agents = lab.worker("lab.fleet", None, *builds["b1"])
    gone = lab.worker("lab.fleet", tool_queue, "--tools-only", *builds["b1"])
    await rolled.make_current("b1")
    gone.stop()
    session = await lab.start(agents, "payer", f"{lab.effects_file} 0")
    lab.worker("lab.fleet", agents.queue, *builds["b2"])
    other = lab.worker("lab.fleet", tool_queue, "--tools-only", *builds["b2"])
    async with asyncio.timeout(60):
        while "(b1), so only calls of that build's own cycles come to it" not in other.said():
            await asyncio.sleep(0.1)
        while not await session.waiting_calls():
            await asyncio.sleep(0.1)
    await rolled.make_current("b2")
    monkeypatch.setattr(
        diagnosis, "POLL_LASTS", timedelta(0)
    )  # else it takes 75 s until the one that has gone counts so
    async with asyncio.timeout(60):
        while "calls that wait" not in (checks := await asyncio.to_thread(doctor, lab, "--task-queue", agents.queue)):
            await asyncio.sleep(0.1)
    check = checks["calls that wait"]
    assert (check["level"], "no worker of build 'b1' polls it" in check["found"]) == ("failure", True)
    assert f"--task-queue {tool_queue} --agents MODULE {rolled.flag} --build-id b1" in check["advice"]
    lab.worker("lab.fleet", tool_queue, "--tools-only", *builds["b1"])
    assert (await session.result()).message["content"][0]["text"] == "seen paid"


async def test_a_call_that_nobody_takes_in_time_is_put_to_a_person(lab, tool_queue, monkeypatch):
    """Said to have not run; a retry runs it once, and skipping it never does."""
    monkeypatch.setenv("FLEET_WAIT_S", "1")
    agents = lab.worker("lab.fleet")
    retried, skipped = [await lab.start(agents, "payer", f"{lab.effects_file} 0") for _ in range(2)]
    [question], [other] = await questions(retried, 1), await questions(skipped, 1)
    assert question.reason["note"] == "Nobody has run the call."
    assert f"no worker of task queue '{tool_queue}' took the call within 1 s" in question.reason["detail"]
    await skipped.answer((other.id, "skip"))
    assert "has not run" in (await skipped.result()).message["content"][0]["text"]
    tools = lab.worker("lab.fleet", tool_queue, "--tools-only")
    monkeypatch.setenv("FLEET_WAIT_S", "600")  # who comes for it now has all the time
    agents.restart()
    await retried.answer((question.id, "retry"))
    assert (await retried.result()).stop_reason == "end_turn"
    assert [effect for effect in lab.effects() if effect.startswith("paid")] == [f"paid-by-{tools.process.pid}"]


async def test_a_call_that_was_lost_on_a_tool_worker_is_an_unknown_outcome(lab, tool_queue):
    """Stopped while it pays for longer than it may: the next worker does not pay again, a person is asked."""
    agents, tools = lab.worker("lab.fleet"), lab.worker("lab.fleet", tool_queue, "--tools-only")
    session = await lab.start(agents, "payer", f"{lab.effects_file} 60")
    paid = f"paid-by-{tools.process.pid}"
    await until_effects(lab, paid)
    tools.stop()
    tools.start()
    [question] = await questions(session, 1)
    assert question.reason["note"] == "The call may have run. Nobody knows."
    await session.answer((question.id, "skip"))
    await session.result()
    assert [effect for effect in lab.effects() if effect.startswith("paid")] == [paid]


async def test_each_agent_is_served_on_its_own_queue(lab, tool_queue):
    """Clients say the same as the worker, "<queue>-{agent}"; one that forgets it is told at once."""
    base = f"fleet-{uuid.uuid4().hex[:8]}"
    lab.worker("lab.fleet", base, "--queue-per-agent")
    client = await AgentClient.connect(lab.address, task_queue=base + "-{agent}")
    session = await client.start("looker", "hello")
    assert (await session.result()).message == {"role": "assistant", "content": [{"text": "looked"}]}
    assert (await session.summary()).task_queue == f"{base}-looker"
    for agent in ("looker", "payer"):
        await until_polled(client.temporal, f"{base}-{agent}")
    assert await pollers(client.temporal, base, "workflow") == []
    lost = await client.start("looker", "hello", task_queue=base)
    assert f"start it with --task-queue '{base}-{{agent}}'" in str(await trouble_at_start(client.temporal, lost, base))
    async with asyncio.timeout(60):  # the list of sessions follows after a moment
        while (checks := await asyncio.to_thread(doctor, lab, "--task-queue", base + "-{agent}")) is not None:
            if f"'{base}-looker'" in checks.get("workers for workflows", {"found": ""})["found"]:
                break
            await asyncio.sleep(0.1)
    await lost.terminate("test")


async def until_polled(temporal, queue: str) -> None:
    """Wait until the server knows who polls a queue for workflows: a worker is ready a moment before."""
    async with asyncio.timeout(60):
        while not await pollers(temporal, queue, "workflow"):
            await asyncio.sleep(0.05)


async def test_a_queues_rate_reaches_the_server(lab, tool_queue, client):
    """`--max-task-queue-activities-per-second` is what the server holds all workers of that queue to."""
    lab.worker("lab.fleet", tool_queue, "--tools-only", "--max-task-queue-activities-per-second", "2.5")
    request = DescribeTaskQueueRequest(
        namespace="default",
        task_queue=TaskQueue(name=tool_queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        report_config=True,
    )
    async with asyncio.timeout(60):
        while (
            await client.workflow_service.describe_task_queue(request)
        ).effective_rate_limit.requests_per_second != 2.5:
            await asyncio.sleep(0.05)


async def test_settings_bound_each_queue_and_share_out_the_process(client):
    """Activities and rates are each queue's own; workflow tasks and cache are the process's, divided."""
    from countersign.agent_core.deployment import load_agents
    from countersign.serving.building import build_workers
    from countersign.serving.settings import WorkerSettings
    from countersign.serving.shares import shares_of

    modules = ["tests.client.served_agents"]
    settings = WorkerSettings(
        agents=modules, queue_per_agent=True, max_concurrent_activities=7, max_activities_per_second=3,
        max_task_queue_activities_per_second=2, max_concurrent_workflow_tasks=8, max_cached_workflows=100,
    )  # fmt: skip
    deployments = dict(list(load_agents(modules).items())[:2])
    workers = build_workers(client, settings, shares_of(settings.task_queue, deployments))
    assert [worker.task_queue for worker in workers] == [f"countersign-{name}" for name in sorted(deployments)]
    for config in (worker.config() for worker in workers):
        assert (config["max_concurrent_activities"], config["max_activities_per_second"]) == (7, 3)
        assert config["max_task_queue_activities_per_second"] == 2
        assert config["disable_eager_activity_execution"], "a call that skips the server would skip its count"
        assert (config["max_concurrent_workflow_tasks"], config["max_cached_workflows"]) == (4, 50)
