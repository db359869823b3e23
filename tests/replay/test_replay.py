"""Histories recorded from real runs replay on the code of this checkout."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from countersign.agent_core.deployment import load_agents
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner
from countersign.workflows.session import AgentSession

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
AGENTS = "tests.durable.lab.agents"


def test_there_are_histories():
    """An empty folder would make the replay test pass for nothing."""
    assert len(HISTORIES) >= 10
    assert {path.name.split("-cycle-")[0] for path in HISTORIES if "-cycle-" in path.name}


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path):
    """Sessions and cycles that began under older code go on under this one."""
    host.install(None, load_agents([AGENTS]))
    replayer = Replayer(
        workflows=[AgentSession, AgentCycle],
        workflow_runner=policed_runner([AGENTS]),
        interceptors=[IntakeGuard()],
        data_converter=pydantic_data_converter,
    )
    history = WorkflowHistory.from_json(f"recorded-{path.stem.replace('-cycle-', '/cycle-')}", path.read_text())
    # A cycle that fails on nondeterminism ends, and Temporal's replayer then waits for ever.
    async with asyncio.timeout(30):
        await replayer.replay_workflow(history)
