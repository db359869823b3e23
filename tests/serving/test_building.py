"""How a process shares its bounds out among many queues, and what it finds wrong with what it serves."""

import asyncio
import os
import uuid
from datetime import timedelta
from typing import Any

import pytest

from countersign import Agent, ScriptedModel, tool
from countersign.activities.heartbeats import HEARTBEAT_S
from countersign.agent_core.deployment import AgentDeployment, load_agents
from countersign.client import AgentClient
from countersign.serving.building import build_workers, crowded
from countersign.serving.checks import overlong
from countersign.serving.settings import WorkerSettings, default_workflow_tasks
from countersign.serving.shares import Share, shares_of
from countersign.workflows.cycle_effects import TOOL_HEARTBEAT

MODULES = ["tests.client.served_agents"]


def queues(number: int, **settings: Any) -> tuple[WorkerSettings, list[Share]]:
    """Settings, and so many queues of one agent."""
    found = WorkerSettings(agents=MODULES, **settings)
    name, agent = next(iter(load_agents(MODULES).items()))
    return found, [Share(f"q{position}", {name: agent}) for position in range(number)]


@pytest.mark.parametrize(("cached", "each"), [(5, 1), (0, 0), (60, 10)])
async def test_each_queue_has_a_cache_unless_none_is_wanted(client, cached, each):
    """More queues than places in the cache would make each step replay its history."""
    workers = build_workers(client, *queues(6, max_cached_workflows=cached))
    assert {worker.config()["max_cached_workflows"] for worker in workers} == {each}


async def test_heartbeats_go_out_as_often_as_they_are_made(client):
    """The SDK holds them back for most of their timeout: one late call, and a running tool would pass for lost."""
    [worker] = build_workers(client, *queues(1))
    assert worker.config()["max_heartbeat_throttle_interval"] == timedelta(seconds=HEARTBEAT_S)
    assert TOOL_HEARTBEAT.total_seconds() > 3 * HEARTBEAT_S


async def test_a_worker_without_a_version_serves_beside_one_that_has_one(temporal_server, client):
    """In one process: how the one's sessions and cycles move between builds would wedge those of the other."""
    build_workers(client, *queues(1, deployment_name="d", build_id="b1"))
    queue = f"plain-{uuid.uuid4().hex[:8]}"
    [worker] = build_workers(client, WorkerSettings(agents=MODULES), [Share(queue, load_agents(MODULES))])
    async with worker, asyncio.timeout(30):
        session = await (await AgentClient.connect(temporal_server, task_queue=queue)).start("asker", "hello")
        assert (await session.result()).stop_reason == "end_turn"


@pytest.mark.parametrize(("cpus", "tasks"), [(1, 4), (3, 6), (64, 16)])
def test_workflow_tasks_are_two_for_each_cpu(cpus, tasks, monkeypatch):
    """Of those that the process may use, within bounds: more tasks run into Temporal's deadlock detector."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1_000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cpus), raising=False)
    assert default_workflow_tasks() == tasks


def test_more_queues_than_workflow_tasks_are_said():
    """Two for each queue are the least: the bound of the process does not hold, and its flag is named."""
    assert "up to 12 at once, where --max-concurrent-workflow-tasks says 10" in str(
        crowded(*queues(6, max_concurrent_workflow_tasks=10))
    )
    assert crowded(*queues(5, max_concurrent_workflow_tasks=10)) is None


def test_workers_of_tools_are_never_crowded():
    """They run no workflow."""
    settings, _ = queues(1, max_concurrent_workflow_tasks=2)
    both = [*shares_of("a", load_agents(MODULES)), *shares_of("b", load_agents(MODULES))]
    assert crowded(settings, both) is not None
    assert crowded(settings.model_copy(update={"tools_only": True}), both) is None


@pytest.mark.parametrize(
    ("timeout", "queue_timeout", "said"),
    [
        (None, None, []),
        (timedelta(hours=20), timedelta(hours=3), []),
        (timedelta(hours=20), timedelta(hours=4), ["24 h"]),
        (None, timedelta(hours=23), ["24 h"]),
    ],
)
def test_a_tool_that_outlasts_its_cycle_is_said(timeout, queue_timeout, said):
    """Its cycle would count as stuck meanwhile, and its call as one that may have run."""

    @tool(timeout=timeout, queue="far" if queue_timeout else None, queue_timeout=queue_timeout)
    def train() -> str:
        """Take long."""
        return ""

    template = Agent(ScriptedModel([]), tools=[train])
    found = overlong({"lab": AgentDeployment("lab", "lab.agents", lambda: template, template)})
    assert len(found) == len(said)
    assert all("tool 'train' of agent 'lab' may take 24 h" in text and "cycle_overrun_s" in text for text in found)
