"""Policy code changes while sessions wait, and cycles that fail do not take their session along."""

import asyncio

from temporalio.client import WorkflowExecutionStatus
from tests.durable.test_waiting import history, questions

from countersign.agent_core.messages import history_faults

POLICY = '''
from pathlib import Path
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent
from countersign.models import calls

@tool
def effect(log: str) -> str:
    """Do it."""
    with Path(log).open("a") as file:
        file.write("ran\\n")
    return "did it"

{extra}

def script(scene):
    if len(scene.turn) > 1:
        return scene.messages[-1]["content"][0]["toolResult"]["content"][0]["text"]
    return calls(("effect", {{"log": scene.prompt}}))

def ask(event: BeforeToolCallEvent) -> None:
    if event.interrupt("may-i", reason="policy 1") != "y":
        event.cancel_tool = "no"

@durable("changing")
def changing() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[effect{tools}], hooks=[{hooks}])
'''


def policy(hooks: str = "ask", extra: str = "", tools: str = "") -> str:
    return POLICY.format(hooks=hooks, extra=extra, tools=tools)


OTHER_TOOL = '@tool\ndef other() -> str:\n    """Unused."""\n    return ""\n'
OTHER_HOOK = 'def deny_nothing(event: BeforeToolsEvent) -> None:\n    event.agent.state.set("seen", True)\n'


async def asked(lab, source: str):
    lab.package("changing", agents=source)
    worker = lab.worker("changing.agents")
    session = await lab.start(worker, "changing", str(lab.effects_file))
    [question] = await questions(session, 1)
    return worker, session, question


async def test_a_hook_added_and_a_tool_removed_while_a_session_waits(lab):
    """The session goes on under the new policy; nothing about its history breaks."""
    worker, session, question = await asked(lab, policy(extra=OTHER_TOOL, tools=", other"))
    lab.package("changing", agents=policy(hooks="ask, deny_nothing", extra=OTHER_HOOK))
    worker.restart()
    await session.answer((question.id, "y"))
    result = await session.result()
    assert (result.stop_reason, result.state, lab.effects()) == ("end_turn", {"seen": True}, ["ran"])


async def test_the_asking_hook_is_removed_after_a_no(lab):
    """A refusal binds the call, not the code: it does not run."""
    worker, session, question = await asked(lab, policy())
    worker.kill()
    await session.respond((question.id, "n"))
    lab.package("changing", agents=policy(hooks=""))
    worker.start()
    result = await session.result()
    assert lab.effects() == []
    assert "refused" in result.message["content"][0]["text"]


async def test_the_asking_hook_is_removed_after_a_yes(lab):
    """An approval under a policy that is gone is not enough: a person is asked about that."""
    worker, session, question = await asked(lab, policy())
    worker.kill()
    await session.respond((question.id, "y"))
    lab.package("changing", agents=policy(hooks=""))
    worker.start()
    async with asyncio.timeout(60):
        while [q.name for q in await session.interrupts()] != ["policy-changed"]:
            await asyncio.sleep(0.05)
    assert lab.effects() == []
    [changed] = await session.interrupts()
    assert (changed.reason["was_asked"], changed.reason["response"]) == ("may-i", "y")
    await session.answer((changed.id, "n"))
    await session.result()
    assert lab.effects() == []


async def test_an_edit_under_a_running_worker_changes_nothing(lab):
    """Policy is compiled once, at the worker's start."""
    _, session, question = await asked(lab, policy())
    lab.package("changing", agents=policy(hooks=""))
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert lab.effects() == ["ran"]


async def test_a_terminated_cycle_keeps_what_was_finished_and_the_session_goes_on(lab, client):
    """Two calls, one done and one running: the result stays, a person is asked about the other."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} effect:a held:b")
    cycle = client.get_workflow_handle(f"{session.id}/cycle-1")
    async with asyncio.timeout(60):
        while sorted(lab.effects()) != ["a", "b-began"] or "TOOL" not in "".join(await finished(cycle)):
            await asyncio.sleep(0.05)
    await cycle.terminate("by hand")
    [question] = await questions(session, 1)
    assert (question.name, question.reason["tool"]) == ("unknown-outcome", "held")
    assert any(line.event == "cycle_failed" and line.detail["kept"] == 1 for line in await session.audit())
    await session.answer((question.id, {"result": "it had run"}))
    result = await session.result()
    assert result.message["content"][0]["text"] == "results: did a; it had run"
    assert lab.effects().count("a") == 1
    assert lab.effects().count("b-began") == 1
    assert history_faults(await history(session)) == []


async def finished(cycle) -> list[str]:
    """Tool activities of a cycle that are done."""
    scheduled, done = {}, []
    async for event in cycle.fetch_history_events():
        given = event.activity_task_scheduled_event_attributes
        if given.activity_id:
            scheduled[event.event_id] = given.activity_type.name
        completed = event.activity_task_completed_event_attributes.scheduled_event_id
        if completed and not scheduled[completed].startswith("countersign."):
            done.append(f"TOOL {scheduled[completed]}")
    return done


async def test_a_cycle_that_meets_other_code_in_its_middle_fails_alone(lab, client):
    """Nondeterminism ends the cycle; the session says so, keeps the model's message and goes on."""
    began = '    Path(log).write_text("began\\n")\n    import time\n    time.sleep(30)\n'
    lab.package("changing", agents=policy(hooks="").replace("    with Path(log)", f"{began}    with Path(log)"))
    worker = lab.worker("changing.agents")
    session = await lab.start(worker, "changing", str(lab.effects_file))
    cycle = client.get_workflow_handle(f"{session.id}/cycle-1")
    async with asyncio.timeout(60):
        while lab.effects() != ["began"]:  # before its mark, the call would rightly just run on the next worker
            await asyncio.sleep(0.05)
    worker.kill()
    stepping = (
        "from countersign import step\n@step\nasync def extra() -> int:\n    return 1\n"
        "async def first(event: BeforeToolCallEvent) -> None:\n    await extra()\n"
    )
    lab.package("changing", agents=policy(hooks="first", extra=stepping))
    worker.start()
    async with asyncio.timeout(60):
        while not any(line.event == "cycle_failed" for line in await session.audit()):
            await asyncio.sleep(0.1)
    [question] = await questions(session, 1)
    assert question.name == "unknown-outcome"
    await session.answer((question.id, "skip"))
    assert (await session.result()).stop_reason == "end_turn"
    assert (await cycle.describe()).status == WorkflowExecutionStatus.FAILED


async def test_a_stuck_cycle_does_not_hang_its_session(lab, client):
    """A cycle that overruns is ended; what it had finished stays, and a person is asked about the rest."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a held:b"
    session = await lab.start(worker, "free", prompt, cycle_overrun_s=10)
    [question] = await questions(session, 1)
    assert (question.name, question.reason["tool"]) == ("unknown-outcome", "held")
    status = (await client.get_workflow_handle(f"{session.id}/cycle-1").describe()).status
    assert status == WorkflowExecutionStatus.TIMED_OUT
    await session.answer((question.id, "skip"))
    assert (await session.result()).message["content"][0]["text"].startswith("results: did a; ")
    assert lab.effects().count("a") == 1
