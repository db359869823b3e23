"""Attempts to wedge or mislead running sessions."""

import asyncio
import contextlib

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import CancelledError
from tests.durable.test_floods import until_queued
from tests.durable.test_intake import failed_tasks, plain, signal
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions, until_status

from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.messages import history_faults

ODD = '''
import sys
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import AfterModelCallEvent, BeforeModelCallEvent, BeforeToolCallEvent
from countersign.models import calls

def cancel(event: BeforeModelCallEvent) -> None:
    event.cancel = "no"

def again(event: AfterModelCallEvent) -> None:
    event.retry = True

@durable("hot")
def hot() -> Agent:
    return Agent(model=ScriptedModel(lambda scene: "done"), hooks=[cancel, again])

def leave(event: BeforeModelCallEvent) -> None:
    sys.exit(3)

@durable("leaving")
def leaving() -> Agent:
    return Agent(model=ScriptedModel(lambda scene: "done"), hooks=[leave])

def exits(scene):
    sys.exit(4)

@durable("exiting-model")
def exiting_model() -> Agent:
    return Agent(model=ScriptedModel(exits))

def made(number):
    @tool(name=f"tool_with_quite_a_long_name_that_nobody_would_type_{number:03}")
    def act() -> str:
        """Act."""
        return "did"
    return act

def ask(event: BeforeToolCallEvent) -> None:
    event.interrupt("may-i")

MANY = [made(number) for number in range(40)]

def all_of_them(scene):
    return "done" if len(scene.turn) > 1 else calls(*((one.tool_name, {}) for one in MANY))

@durable("many")
def many() -> Agent:
    return Agent(model=ScriptedModel(all_of_them), tools=MANY, hooks=[ask])

@durable("surrogate")
def surrogate() -> Agent:
    return Agent(model=ScriptedModel([[{"text": "half \\ud83d"}]]))

@durable("talk")
def talk() -> Agent:
    return Agent(model=ScriptedModel(lambda scene: "ok"))
'''


@pytest.fixture
def odd(lab):
    lab.package("odd", agents=ODD)
    return lab.worker("odd.agents")


async def test_an_invoke_with_unsendable_extras_wedges_nothing(lab, client, odd):
    """NaN and lone surrogates beside a prompt or a turn are refused; no workflow task fails."""
    session = await lab.start(odd, "talk", "hello", lifetime="open")
    handle = client.get_workflow_handle(session.id)
    for text in ('{"prompt": "x", "more": NaN}', '{"turn": 1, "more": "\\ud800"}', '{"turn": 1000}'):
        from temporalio.common import RawValue

        payload = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text.encode()))
        with pytest.raises(WorkflowUpdateFailedError):
            async with asyncio.timeout(60):
                await handle.execute_update("invoke", payload)
    assert (await session.invoke("fine")).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0
    await session.close()


@pytest.mark.parametrize("agent", ["hot", "leaving", "exiting-model"])
async def test_code_that_never_yields_or_exits_fails_its_turn(lab, client, odd, agent):
    """A hot loop of retries and `sys.exit` in a hook or model end the turn; worker and session live on."""
    session = await lab.start(odd, agent, "go", lifetime="open")
    async with asyncio.timeout(60):
        while (await session.status())["stop_reason"] != "failed":
            await asyncio.sleep(0.1)
    assert odd.process.poll() is None
    assert await failed_tasks(client, session.id) == 0
    await session.close()


async def test_many_long_tool_names_wedge_nothing(lab, client, odd):
    """The summary of a resumed cycle stays short enough for the server."""
    session = await lab.start(odd, "many", "go")
    found = await questions(session, 40)
    await session.answer([{"interruptResponse": {"interruptId": q.id, "response": "y"}} for q in found])
    async with asyncio.timeout(60):
        assert (await session.result()).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0


async def test_half_a_character_from_a_model_costs_nothing(lab, odd):
    """A lone surrogate in a model's text is replaced; it can't be sent."""
    session = await lab.start(odd, "surrogate", "go")
    async with asyncio.timeout(60):
        assert (await session.result()).message["content"] == [{"text": "half \ufffd"}]


async def test_a_stop_before_the_worker_starts_ends_a_session_of_one_turn(lab, odd):
    """Nobody waits for a turn that was stopped before it began."""
    odd.kill()
    session = await lab.start(odd, "talk", "go")
    await session.stop()
    odd.start()
    async with asyncio.timeout(60):
        assert (await session.result()).stop_reason == "cancelled"


async def test_an_invoke_whose_prompt_is_stopped_away_returns(lab):
    """An invoke that waits for its turn is not left waiting when a stop clears the queue."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a", lifetime="open")
    await until_effects(lab, "a-began")
    waiting = asyncio.create_task(session.invoke("later"))
    await until_queued(session, 1)
    await session.stop()
    lab.let_go()
    async with asyncio.timeout(60):
        assert (await waiting).stop_reason == "cancelled"
    await session.close()


@pytest.mark.parametrize("lifetime", ["turn", "open"])
async def test_a_cancel_during_a_cycle_cancels_the_session(lab, client, lifetime):
    """A Temporal cancel while a tool runs ends the session; nothing goes on or runs again."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a", lifetime=lifetime)
    await until_effects(lab, "a-began")
    handle = client.get_workflow_handle(session.id)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as failed:
        async with asyncio.timeout(60):
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert lab.effects().count("a-began") == 1


async def test_a_session_that_outgrows_what_can_be_sent_says_so(lab, client, odd):
    """A conversation over 2 MB fails its turns by name; neither a cycle's start nor a new run wedges the session."""
    session = await lab.start(odd, "talk", "hello", lifetime="open", continue_after_events=30)
    async with asyncio.timeout(120):
        for _ in range(3):
            await session.invoke("x" * 450_000)
        for _ in range(3):
            with contextlib.suppress(AgentRunError):
                await session.invoke("x" * 450_000)
        with pytest.raises(AgentRunError, match="PayloadTooLargeError"):
            await session.invoke("x" * 450_000)
    assert await failed_tasks(client, session.id) == 0
    await session.close()


async def test_a_new_session_of_an_old_id_asks_new_questions(lab, client):
    """A late answer to a session that has ended can't approve a call of a later one with its id."""
    worker = lab.worker()
    argument = {"agent": "per-call", "prompt": f"effects={lab.effects_file} effect:a"}
    asked = []
    for _ in range(2):
        await client.start_workflow("AgentSession", argument, id=f"same-{worker.queue}", task_queue=worker.queue)
        session = (await lab.client(worker)).session(f"same-{worker.queue}")
        [question] = await questions(session, 1)
        asked.append(question.id)
        await session.stop()
        await session.result()
    assert asked[0] != asked[1]


async def test_a_burst_of_signals_is_taken(lab, client):
    """500 answers in a burst: the first one counts, the others are acknowledged; the call runs once."""
    worker = lab.worker()
    session = await lab.start(
        worker, "per-call", f"effects={lab.effects_file} effect:a effect:b", lifetime="open", continue_after_events=20
    )
    first, second = await questions(session, 2)
    block = [{"interruptResponse": {"interruptId": first.id, "response": "y"}}]
    await asyncio.gather(*(signal(client, session.id, "respond", [plain(block)]) for _ in range(500)))
    await questions(session, 1)
    await session.answer((second.id, "y"))
    await until_status(session, "idle")
    assert sorted(lab.effects()) == ["a", "b"]
    assert history_faults(await history(session)) == []
    await session.close()
