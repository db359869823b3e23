"""A session that is cancelled while it waits to hear whether its cycle has started."""

import asyncio

from temporalio.client import WorkflowExecutionStatus
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions

HOLDS = """
from pathlib import Path

from lab.agents import *  # the agents, and a worker that hears nothing more of a session once that asked for a cycle
from temporalio.bridge import worker as bridge

FLAG = Path({flag!r})
HELD = set()

if not hasattr(bridge, "holds"):
    bridge.holds = True
    complete, poll = bridge.Worker.complete_workflow_activation, bridge.Worker.poll_workflow_activation

    async def complete_and_hold(self, completion):
        if FLAG.exists() and any(
            command.HasField("start_child_workflow_execution") for command in completion.successful.commands
        ):
            HELD.add(completion.run_id)
        await complete(self, completion)

    async def poll_others(self):
        while (activation := await poll(self)).run_id in HELD:
            pass  # the server waits for this task until its time is over
        return activation

    bridge.Worker.complete_workflow_activation = complete_and_hold
    bridge.Worker.poll_workflow_activation = poll_others
"""


async def test_what_such_a_cycle_did_counts_as_not_known(lab, client):
    """It ran an approved tool meanwhile; "not run" would be a lie in the conversation and in the audit trail."""
    flag = lab.folder / "flag"
    lab.package("holds", agents=HOLDS.format(flag=str(flag)))
    holding = lab.worker("holds.agents")  # the only one until the end, so that no other tells the session
    session = await lab.start(holding, "per-call", f"effects={lab.effects_file} effect:a", lifetime="open")
    [question] = await questions(session, 1)
    flag.touch()
    await session.respond((question.id, "y"))
    await until_effects(lab, "a")
    await client.get_workflow_handle(f"{session.id}/cycle-2").result()
    await client.get_workflow_handle(session.id).cancel()
    holding.kill()
    lab.worker("lab.agents", holding.queue)
    async with asyncio.timeout(60):
        while (await client.get_workflow_handle(session.id).describe()).status != WorkflowExecutionStatus.CANCELED:
            await asyncio.sleep(0.1)
    failed = [line for line in await session.audit() if line.event == "cycle_failed"]
    assert [(line.detail["lost"], line.detail["unknown"]) for line in failed] == [(True, [0])]
    said = str(await history(session))
    assert "may have run" in said and "Not run: the turn was stopped" not in said
