"""A worker that dies or is stopped around a running tool: never a silent second run."""

import asyncio
import json
import time

import pytest
from temporalio import activity
from tests.durable.test_waiting import questions

from countersign.agent_core.interrupts import call_digest
from countersign.agent_core.wire import INVOKING, ToolCall


async def until_effects(lab, *wanted: str) -> None:
    """Wait until tools have left these traces."""
    async with asyncio.timeout(60):
        while [item for item in wanted if item not in lab.effects()]:
            await asyncio.sleep(0.02)


async def test_sigkill_during_a_tool_asks_a_person_and_a_retry_runs_it(lab):
    """After the mark nobody knows whether it ran; "retry" runs it once more."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    worker.restart()
    [question] = await questions(session, 1)
    assert (question.name, question.answers["skip"]) == ("unknown-outcome", "skip")
    assert lab.effects() == ["a-began"], "it must not have been run again"
    lab.let_go()
    await session.answer((question.id, "retry"))
    assert (await session.result()).message["content"][0]["text"] == "results: did a"
    assert lab.effects() == ["a-began", "a-began", "a-ended"]


async def test_sigkill_during_an_approved_tool_keeps_the_approval_for_the_retry(lab):
    """The person who approved is not asked the same again, only whether to run it again."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} held:a")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await until_effects(lab, "a-began")
    worker.restart()
    [unknown] = await questions(session, 1)
    assert unknown.name == "unknown-outcome"
    await session.answer((unknown.id, "skip"))
    result = await session.result()
    assert "may or may not have run" in result.message["content"][0]["text"]
    assert lab.effects() == ["a-began"]


async def test_sigkill_during_an_idempotent_tool_runs_it_again_with_the_same_key(lab):
    """An idempotent tool is repeated and nobody is asked."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held_idempotent:a")
    await until_effects(lab, "a-began")
    worker.restart()
    lab.let_go()
    assert (await session.result()).stop_reason == "end_turn"
    keys = [item for item in lab.effects() if item.startswith("key-")]
    assert (lab.effects().count("a-began"), len(keys)) == (2, 1)


async def test_sigterm_lets_a_short_tool_finish(lab):
    """SIGTERM drains: a tool that ends within the grace period has its result."""
    worker = lab.worker("lab.agents", None, "--graceful-shutdown-s", "60")
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    stopping = asyncio.create_task(asyncio.to_thread(worker.stop))
    async with asyncio.timeout(60):
        while "stopping; running tools get" not in worker.said():
            await asyncio.sleep(0.02)
    lab.let_go()
    await stopping
    worker.start()
    assert (await session.result()).message["content"][0]["text"] == "results: did a"
    assert lab.effects() == ["a-began", "a-ended"]


async def test_sigterm_during_a_long_tool_is_an_unknown_outcome(lab):
    """A tool that outlives the grace period may have run: a person is asked."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    worker.stop()
    worker.start()
    [question] = await questions(session, 1)
    assert question.name == "unknown-outcome"
    await session.answer((question.id, "skip"))
    await session.result()
    assert lab.effects() == ["a-began"]


BEFORE_THE_MARK = """
import asyncio, os, signal
from pathlib import Path
from countersign.activities import mark as room

original = room.leave_mark

async def dying_mark():
    flag = Path({flag!r})
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.{number})
        await asyncio.sleep(60)
    await original()

room.leave_mark = dying_mark
from lab.agents import *
"""


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM"])
async def test_a_worker_that_ends_before_the_mark_never_started_the_tool(lab, number):
    """The call is handed back and runs once; nobody is asked."""
    lab.package("dying", agents=BEFORE_THE_MARK.format(flag=str(lab.folder / "flag"), number=number))
    worker = lab.worker("dying.agents")
    session = await lab.start(worker, "free", f"effects={lab.effects_file} effect:a")
    async with asyncio.timeout(60):
        while worker.process.poll() is None:
            await asyncio.sleep(0.05)
    worker.start()
    assert (await session.result()).stop_reason == "end_turn"
    assert lab.effects() == ["a"]


async def test_a_tool_activity_refuses_what_was_not_signed(lab, client):
    """The activity recomputes the digest of what it received and runs nothing else."""
    from temporalio.testing import ActivityEnvironment
    from tests.durable.lab.agents import effect

    from countersign.agent_core.tools.execution import execute

    signed = {"log": str(lab.effects_file), "label": "signed"}
    call = ToolCall(
        agent="free", session_id="s", cycle=1, index=0, tool="effect", tool_use_id="u", idempotency_key="k",
        input={**signed, "label": "other"}, digest=call_digest("effect", signed),
    )  # fmt: skip

    async def run(call: ToolCall):
        beat = activity.heartbeat
        return await execute(effect, call, in_thread=asyncio.to_thread, heartbeat=beat, clock=time.monotonic)

    outcome = await ActivityEnvironment().run(run, call)
    assert (outcome.kind, lab.effects()) == ("never_started", [])


BEATS = '''
import asyncio
import os

from temporalio import activity

from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import calls


@tool
async def copies(log: str, details: list[str]) -> None:
    """Copy, and tell how far it is as Temporal's long activities do, once it may."""
    with open(log, "a") as file:
        file.write("began\\n")
    while not os.path.exists(log + ".go"):
        await asyncio.sleep(0.02)
    while True:
        activity.heartbeat(*details)
        await asyncio.sleep(0.02)


def script(scene):
    log, *details = scene.prompt.split()
    return calls(("copies", {"log": log, "details": details})) if len(scene.turn) == 1 else "done"


@durable("copier")
def copier() -> Agent:
    return Agent(ScriptedModel(script), tools=[copies])
'''


@pytest.mark.parametrize("details", ["", "3-of-30"])
async def test_a_tool_that_heartbeats_by_itself_is_not_run_twice(lab, client, details):
    """Its own heartbeat, with details of its own or none, does not take the mark away that it has begun."""
    lab.package("beats", agents=BEATS)
    worker = lab.worker("beats.agents")
    session = await lab.start(worker, "copier", f"{lab.effects_file} {details}")
    await until_effects(lab, "began")
    cycle = client.get_workflow_handle(f"{session.id}/cycle-1")
    mark, _ = await last_heartbeat(cycle)
    lab.let_go()
    async with asyncio.timeout(60):  # Countersign's own heartbeats come in between, with the mark alone
        while (heartbeat := await last_heartbeat(cycle))[0] == mark or heartbeat[1] != [INVOKING, *details.split()]:
            await asyncio.sleep(0.02)
    worker.restart()
    [question] = await questions(session, 1)
    assert question.name == "unknown-outcome"
    assert lab.effects() == ["began"]


async def last_heartbeat(cycle):
    """When a cycle's only call has last told how far it is, and what it said, as the server knows it."""
    [call] = (await cycle.describe()).raw_description.pending_activities
    return call.last_heartbeat_time.ToNanoseconds(), [json.loads(part.data) for part in call.heartbeat_details.payloads]


CHARGING = '''
import asyncio
from pathlib import Path
from countersign import Agent, ScriptedModel, ToolContext, durable, tool
from countersign.hooks import AfterToolCallEvent
from countersign.models import calls

@tool(context=True, idempotent=True)
async def charge(tool_context: ToolContext, log: str) -> str:
    """Charge: fail in the first run, and hang in the second."""
    with Path(log).open("a") as keys:
        keys.write(tool_context.idempotency_key + "\\n")
    runs = len(Path(log).read_text().split())
    if runs == 1:
        raise ConnectionError("down")
    if runs == 2:
        await asyncio.sleep(60)
    return "charged"

def again(event: AfterToolCallEvent):
    event.retry = event.result["status"] == "error"

@durable("charging")
def charging():
    model = ScriptedModel(lambda scene: "done" if len(scene.turn) > 1 else calls(("charge", {"log": scene.prompt})))
    return Agent(model, tools=[charge], hooks=[again])
'''


async def test_a_lost_second_run_is_repeated_with_its_own_key(lab, client):
    """And not with that of the first run, of which a vendor still knows that it failed."""
    lab.package("charges", agents=CHARGING)
    session = await lab.start(lab.worker("charges.agents"), "charging", str(lab.effects_file))
    async with asyncio.timeout(60):
        while len(lab.effects()) < 2:
            await asyncio.sleep(0.05)
    await client.get_workflow_handle(f"{session.id}/cycle-1").terminate(reason="a test")
    [question] = await questions(session, 1)
    await session.answer((question.id, "retry"))
    assert (await session.result()).stop_reason == "end_turn"
    first, second, third = lab.effects()
    assert first != second == third
