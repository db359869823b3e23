"""A session that is cancelled while it waits to hear whether its cycle has started."""

import asyncio

from temporalio.client import WorkflowExecutionStatus
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions

from countersign.client import SessionHandle

DIES = """
import os
import signal
from pathlib import Path

from lab.agents import *  # the agents, and a worker that is lost right after it has asked for a cycle
from temporalio.bridge import worker as bridge

FLAG = Path({flag!r})

if not hasattr(bridge, "dies"):
    bridge.dies = True
    complete = bridge.Worker.complete_workflow_activation

    async def complete_and_die(self, completion):
        await complete(self, completion)
        if FLAG.exists() and any(
            command.HasField("start_child_workflow_execution") for command in completion.successful.commands
        ):
            FLAG.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    bridge.Worker.complete_workflow_activation = complete_and_die
"""


async def cancelled(lab, client, label: str) -> SessionHandle:
    """A session whose worker was lost right after it had asked for a cycle, which has run; cancelled then."""
    flag = lab.folder / "flag"
    lab.package("dies", agents=DIES.format(flag=str(flag)))
    first = lab.worker("dies.agents", None, "--sticky-timeout-s", "12")
    lab.worker("dies.agents", first.queue, "--sticky-timeout-s", "12")
    session = await lab.start(first, "per-call", f"effects={lab.effects_file} effect:{label}", lifetime="open")
    [question] = await questions(session, 1)
    flag.touch()
    await session.respond((question.id, "y"))
    await until_effects(lab, label)  # by the worker that is left; the session's next task waits for the lost one
    await client.get_workflow_handle(f"{session.id}/cycle-2").result()
    await client.get_workflow_handle(session.id).cancel()
    async with asyncio.timeout(60):
        while (await client.get_workflow_handle(session.id).describe()).status != WorkflowExecutionStatus.CANCELED:
            await asyncio.sleep(0.1)
    return session


async def test_what_such_a_cycle_did_counts_as_not_known(lab, client):
    """It ran an approved tool meanwhile; "not run" would be a lie in the conversation and in the audit trail."""
    for label in ("a", "b", "c"):  # on a busy machine the cancel may come after the session has heard of its cycle
        session = await cancelled(lab, client, label)
        failed = [line for line in await session.audit() if line.event == "cycle_failed"]
        if failed:
            break
    assert [(line.detail["lost"], line.detail["unknown"]) for line in failed] == [(True, [0])]
    said = str(await history(session))
    assert "may have run" in said and "Not run: the turn was stopped" not in said
