"""Calls that wait to begin: for a worker until their approval lapses, for the calls before them until a stop."""

import asyncio
import uuid

from temporalio.api.enums.v1 import EventType
from tests.crash.histories import events_of
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions, until_status

from countersign.client import Question, SessionHandle

TTL_S = 4
SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED

AGENTS = '''
import asyncio
import os

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop


def trace(log, label):
    with open(log, "a") as file:
        file.write(label + "\\n")


@tool(queue={queue!r})
def pay(log: str) -> str:
    """Pay."""
    trace(log, "paid")
    return "paid"


@tool
async def carry(log: str, label: str, load: str) -> str:
    """Wait until it may end; a call of it is so large that only two go out together."""
    trace(log, label)
    while not os.path.exists(log + ".go"):
        await asyncio.sleep(0.05)
    return "carried"


@durable("payer")
def payer() -> Agent:
    script = lambda scene: calls(("pay", {{"log": scene.prompt}})) if len(scene.turn) == 1 else "done"
    return Agent(ScriptedModel(script), tools=[pay], interventions=[HumanInTheLoop()])


def ask_for_all(event: BeforeToolsEvent) -> None:
    if event.interrupt("all?") != "y":
        event.cancel = True


@durable("batch-payer")
def batch_payer() -> Agent:
    script = lambda scene: calls(("pay", {{"log": scene.prompt}})) if len(scene.turn) == 1 else "done"
    return Agent(ScriptedModel(script), tools=[pay], hooks=[ask_for_all])


def load(event: BeforeToolCallEvent) -> None:
    event.tool_use["input"]["load"] = "x" * 700_000


@durable("carrier")
def carrier() -> Agent:
    script = lambda scene: calls(*[("carry", {{"log": scene.prompt, "label": label, "load": ""}}) for label in "abc"])
    return Agent(ScriptedModel(script), tools=[carry], hooks=[load])
'''


async def signed_to_the_end(session: SessionHandle) -> None:
    """Approve whatever is asked: on a busy machine an answer may lapse once more."""
    async with asyncio.timeout(120):
        while asked := await session.wait_for_questions():
            await session.answer([(one.id, "retry" if one.name == "unknown-outcome" else "y") for one in asked])


async def lapsed(lab, agent: str) -> tuple[SessionHandle, Question, Question]:
    """A session whose call was approved before a worker could take it; the question that was answered, and the next."""
    queue = f"pay-{uuid.uuid4().hex[:8]}"
    lab.package("waves", agents=AGENTS.format(queue=queue))
    session = await lab.start(lab.worker("waves.agents"), agent, str(lab.effects_file), approval_ttl_s=TTL_S)
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await asyncio.sleep(TTL_S + 1)  # until the approval has lapsed, by the server's clock
    lab.worker("waves.agents", queue, "--tools-only")
    async with asyncio.timeout(60):
        while not (again := [one for one in await session.interrupts() if one.id != question.id]):
            await asyncio.sleep(0.1)
    return session, question, again[0]


async def test_an_approval_that_lapses_while_its_call_waits_for_a_worker_is_asked_for_again(lab):
    """By the server's clock; what was approved hours ago does not run because a worker comes back."""
    session, question, again = await lapsed(lab, "payer")
    assert (again.name, lab.effects()) == (question.name, [])
    assert "had not started in time" in str(again.fault)
    await signed_to_the_end(session)
    assert lab.effects() == ["paid"]


async def test_the_approval_of_a_batch_lapses_too(lab):
    """Countersign asks about the call that nobody has run; if it shall run, the batch's hook asks as well."""
    session, _, again = await lapsed(lab, "batch-payer")
    assert (again.name, again.reason["note"], lab.effects()) == ("unknown-outcome", "Nobody has run the call.", [])
    await signed_to_the_end(session)
    assert lab.effects() == ["paid"]


async def until_told_to_stop(client, session: SessionHandle) -> None:
    """Wait until a session's first cycle has been told to stop: until then it begins what comes next."""
    async with asyncio.timeout(60):
        while all(event.event_type != SIGNALED for event in await events_of(client, f"{session.id}/cycle-1")):
            await asyncio.sleep(0.05)


async def test_a_stop_holds_back_the_calls_that_have_not_gone_out(lab, client):
    """Large calls go out in waves; a stop lets finish what runs and begins nothing."""
    lab.package("waves", agents=AGENTS.format(queue="none"))
    session = await lab.start(lab.worker("waves.agents"), "carrier", str(lab.effects_file), lifetime="open")
    await until_effects(lab, "a", "b")
    await session.stop()
    await until_told_to_stop(client, session)
    lab.let_go()
    await until_status(session, "idle")
    assert sorted(lab.effects()) == ["a", "b"]
    assert "the turn was stopped" in str((await history(session))[-2])
