"""Stop, cancel, terminate, time out and reset a session in each of its states."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from tests.crash.histories import children_of, failed_tasks
from tests.durable.test_waiting import history, questions, until_status
from tests.durable.test_waves import until_told_to_stop
from tests.support.resetting import reset

from countersign.agent_core.messages import history_faults
from countersign.client import AgentClient, SessionHandle

AGENTS = '''
import asyncio
import os
import time
from pathlib import Path

from countersign import Agent, ScriptedModel, ToolContext, durable, step, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls

GO = Path(os.environ["HOLD"], "go")

def trace(label):
    with Path(os.environ["HOLD"], "trace").open("a") as file:
        file.write(label + "\\n")

async def hold(label):
    """Wait until the test lets go; say whether it was told to stop."""
    trace(f"{label}-began")
    try:
        while not GO.exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        trace(f"{label}-told")
        raise
    trace(f"{label}-ended")

@tool
async def wait(label: str) -> str:
    """Wait on the event loop."""
    await hold(label)
    return f"did {label}"

@tool(context=True)
def block(tool_context: ToolContext, label: str) -> str:
    """Wait in a thread."""
    trace(f"{label}-began")
    try:
        while not GO.exists():
            tool_context.heartbeat()
            time.sleep(0.02)
    except Exception:
        trace(f"{label}-told")
        raise
    trace(f"{label}-ended")
    return f"did {label}"

@tool
def act(label: str) -> str:
    """Act."""
    trace(label)
    return f"did {label}"

@step
async def look(label: str) -> bool:
    await hold(label)
    return True

async def gate(event: BeforeToolCallEvent) -> None:
    label = event.tool_use["input"]["label"]
    if label.startswith("step-"):
        await look(label)
    if label.startswith("ask-") and event.interrupt("may", reason=label) != "y":
        event.cancel_tool = "no"

async def script(scene):
    uses = [word.split(":") for word in scene.prompt.split() if ":" in word]
    if len(scene.turn) > 1 or not uses:
        return "done"
    if scene.prompt.startswith("model-"):
        await hold(scene.prompt.split()[0])
    return calls(*((name, {"label": label}) for name, label in uses))

@durable("held")
def held() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[wait, block, act], hooks=[gate])
'''

STATES = {
    "idle": "hello",
    "model": "model-m act:v",
    "tool": "wait:w act:x",
    "thread": "block:b act:y",
    "step": "act:step-s act:z",
    "waiting": "act:ask-1 act:ask-2",
    "partial": "act:ask-3 act:ask-4",
    "moved": "act:ask-5 act:ask-6",
}
"""Sessions by state, with the prompt that brings them there. "moved" waits in its second run, or between two."""

BEGUN = {
    "model": ["model-m-began"],
    "tool": ["w-began", "x"],
    "thread": ["b-began", "y"],
    "step": ["step-s-began"],
}

END_S = 60

REACH = timedelta(seconds=30)
"""Time enough to bring the sessions to their states, before Temporal ends them."""


class Held:
    """Sessions in all states.

    Args:
        lab: Where they run.
    """

    def __init__(self, lab) -> None:
        self._lab = lab
        self.sessions: dict[str, SessionHandle] = {}

    async def reach(self, lasting: timedelta | None = None) -> None:
        """Start the sessions and wait until each is in its state; after `lasting` Temporal ends them."""
        self._lab.package("holding", agents=AGENTS)
        worker = self._lab.worker("holding.agents")
        self._client = await self._lab.client(worker)
        await asyncio.gather(*(self._reach(state, lasting) for state in STATES))

    async def _reach(self, state: str, lasting: timedelta | None) -> None:
        session = self.sessions[state] = await self._start(state, lasting)
        if state in BEGUN:
            await self.until_traced(*BEGUN[state])
        elif state == "idle":
            await until_status(session, "idle")
        else:
            first, _ = await questions(session, 2)
            if state != "waiting":
                await session.answer((first.id, "y"))
            if state == "partial":
                await self.until_traced("ask-3")
                await until_status(session, "waiting")
                await questions(session, 1)

    async def _start(self, state: str, lasting: timedelta | None) -> SessionHandle:
        given = {"agent": "held", "prompt": STATES[state], "lifetime": "open"}
        if state == "moved":
            given["continue_after_events"] = 8
        started = await self._client.temporal.start_workflow(
            "AgentSession", given, id=f"held-{state}-{uuid.uuid4().hex[:8]}", task_queue=self._client.task_queue,
            execution_timeout=lasting,
        )  # fmt: skip
        return self._client.session(started.id)

    def traces(self) -> list[str]:
        """What tools, steps and models did."""
        file = self._lab.folder / "trace"
        return file.read_text().split() if file.exists() else []

    async def until_traced(self, *wanted: str) -> None:
        """Wait for traces."""
        async with asyncio.timeout(END_S):
            while not set(wanted) <= set(self.traces()):
                await asyncio.sleep(0.05)

    async def each(self, act: Callable[[SessionHandle], Awaitable[object]]) -> None:
        """Do something to all sessions at once."""
        await asyncio.gather(*(act(session) for session in self.sessions.values()))

    def let_go(self) -> None:
        """Let everything that holds go on."""
        (self._lab.folder / "go").touch()


@pytest.fixture
def held(lab, monkeypatch) -> Held:
    monkeypatch.setenv("HOLD", str(lab.folder))
    return Held(lab)


async def until_all_ended(client: Client, session: SessionHandle) -> WorkflowExecutionStatus | None:
    """Wait until a session and its cycles have ended; how the session did."""
    names = [session.id, *{child async for child, _ in children_of(client, session.id)}]
    status = None
    async with asyncio.timeout(END_S):
        for name in reversed(names):
            while (status := (await client.get_workflow_handle(name).describe()).status) == RUNNING:
                await asyncio.sleep(0.05)
    return status


RUNNING = WorkflowExecutionStatus.RUNNING


async def in_order(client: Client, session: SessionHandle) -> None:
    """Each toolUse has its one result, nothing is asked, no workflow task has failed."""
    assert history_faults(await history(session)) == []
    assert await session.interrupts() == []
    asked = {line.detail["question"] for line in await session.audit() if line.event == "question_asked"}
    closed = {line.detail["question"] for line in await session.audit() if line.event in CLOSING}
    assert asked <= closed
    failed = await failed_tasks(client, session.id)
    assert [failure for failure in failed if "CAUSE_RESET_WORKFLOW" not in failure] == []


CLOSING = ("answered", "question_withdrawn", "expired")


async def test_a_stop_in_every_state_leaves_a_session_that_goes_on(held, client):
    """What runs comes to its end and is reported, but a model is told; what is asked is withdrawn; a prompt works."""
    await held.reach()
    stopping = [asyncio.create_task(session.stop_and_wait()) for session in held.sessions.values()]
    for state in BEGUN:
        await until_told_to_stop(client, held.sessions[state])
    await held.until_traced("model-m-told")
    held.let_go()
    async with asyncio.timeout(END_S):
        reports = dict(zip(held.sessions, await asyncio.gather(*stopping), strict=True))
    assert {state: report.outcome for state, report in reports.items()} == {
        state: "idle" if state == "idle" else "stopped" for state in STATES
    }
    assert [name for name in reports if reports[name].stop_reason != "cancelled"] == ["idle"]
    assert {state: reports[state].ran_on for state in ("tool", "thread", "step")} == {
        "tool": ["wait"], "thread": ["block"], "step": [],
    }  # fmt: skip
    assert {state: len(report.withdrawn) for state, report in reports.items() if report.withdrawn} == {
        "waiting": 2, "partial": 1, "moved": 1,
    }  # fmt: skip
    for session in held.sessions.values():
        await in_order(client, session)
        assert (await session.invoke("hello")).stop_reason == "end_turn"
    await held.each(lambda session: session.close())
    assert [trace for trace in held.traces() if trace in ("v", "step-s", "z", "ask-1", "ask-2", "ask-4", "ask-6")] == []


async def test_a_cancel_in_every_state_ends_session_and_cycles_and_tells_tools(held, client):
    """Models, tools and steps that run are told; the conversation is complete; the workflows end as cancelled."""
    await held.reach()
    await held.each(lambda session: client.get_workflow_handle(session.id).cancel())
    await held.until_traced("model-m-told", "w-told", "b-told", "step-s-told")
    ends = [await until_all_ended(client, session) for session in held.sessions.values()]
    assert set(ends) == {WorkflowExecutionStatus.CANCELED}
    for session in held.sessions.values():
        await in_order(client, session)
    assert not {"ask-1", "ask-2", "ask-4", "ask-6"} & set(held.traces())


@pytest.mark.parametrize("how", ["TERMINATED", "TIMED_OUT"])
async def test_a_session_ended_from_outside_takes_its_cycles_along(held, client, how):
    """In every state: nothing can be put in order, but what runs is told, and no list shows a question."""
    await held.reach(REACH if how == "TIMED_OUT" else None)
    if how == "TERMINATED":
        await held.each(lambda session: session.terminate("a test"))
    await held.until_traced("model-m-told", "w-told", "b-told", "step-s-told")
    ends = [await until_all_ended(client, session) for session in held.sessions.values()]
    assert set(ends) == {WorkflowExecutionStatus[how]}
    ids = {session.id for session in held.sessions.values()}
    async with asyncio.timeout(END_S):
        while ids & {item.session_id async for item in AgentClient(client).waiting()}:
            await asyncio.sleep(0.1)
    assert [await session.interrupts() for session in held.sessions.values()] == [[]] * len(STATES)


async def test_a_reset_in_every_state_tells_what_runs_and_runs_no_call_again(held, client):
    """To the first task: cycles that the reset has cut off end, and people are asked about what may have run."""
    await held.reach()
    await held.each(lambda session: reset(client, session.id, 0))
    await held.until_traced("model-m-told", "w-told", "b-told", "step-s-told")
    held.let_go()
    await held.each(refuse_all)
    for session in held.sessions.values():
        await in_order(client, session)
        async with asyncio.timeout(END_S):
            while [run async for run in client.list_workflows(RUNNING_CYCLES.format(session.id))]:
                await asyncio.sleep(0.1)
    ran = Counter(held.traces())
    assert [ran[once] for once in ("w-began", "x", "b-began", "y", "ask-3")] == [1] * 5
    assert ran["ask-5"] <= 1  # it was approved just before, and may not have begun
    assert [ran[never] for never in ("v", "z", "ask-1", "ask-2", "ask-4", "ask-6")] == [0] * 6
    await held.each(lambda session: session.close())


async def test_a_reset_to_after_a_cycle_began_waits_for_that_cycle(held, lab, client):
    """It is not cut off: its tool goes on, its outcome counts, nobody is asked."""
    lab.package("holding", agents=AGENTS)
    session = await lab.start(lab.worker("holding.agents"), "held", "wait:w", lifetime="open")
    await held.until_traced("w-began")
    await session.prompt("hello")  # a task later than that of the cycle's beginning
    async with asyncio.timeout(END_S):
        while (await session.status())["queued_prompts"] != 1:
            await asyncio.sleep(0.05)
    await reset(client, session.id, -1)
    held.let_go()
    await refuse_all(session)
    assert "did w" in str(await history(session))
    assert held.traces() == ["w-began", "w-ended"]
    await session.close()


RUNNING_CYCLES = "WorkflowId STARTS_WITH '{}/cycle-' AND ExecutionStatus = 'Running'"


async def refuse_all(session: SessionHandle) -> None:
    """Let nothing run of what a session asks about, until its turns are over."""
    async with asyncio.timeout(END_S):
        while (now := await session.status())["status"] != "idle" or now["turn"] == 0:
            for question in await session.interrupts():
                await session.answer((question.id, "skip" if question.name == "unknown-outcome" else "n"))
            await asyncio.sleep(0.05)
