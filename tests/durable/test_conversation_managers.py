"""Conversation managers on a worker: recorded, policed, the same as in-process, and nothing lost by a crash."""

import asyncio

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from tests.durable.lab import talks
from tests.durable.test_long_sessions import documents
from tests.durable.test_vended import activities
from tests.durable.test_waiting import history, questions

from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.conversation_managers.cutting import is_summary
from countersign.agent_core.deployment import load_agents
from countersign.agent_core.messages import history_faults, message_text, tool_uses
from countersign.agent_core.wire import STEP_ACTIVITY
from countersign.workflows import host
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.sandbox import policed_runner
from countersign.workflows.session import AgentSession

LONG = [f"p{number} {'.' * 300}" for number in range(6)]

PLAIN_AGENT = """
from countersign import Agent, durable
from countersign.agent.conversation_manager import SlidingWindowConversationManager
from tests.durable.lab.talks import Narrow


@durable("plain")
def plain() -> Agent:
    return Agent(Narrow())
"""


@pytest.fixture
def trace(lab, monkeypatch):
    """What the model for summaries writes down."""
    file = lab.folder / "trace"
    monkeypatch.setenv("TRACE", str(file))
    return file


async def talk(lab, worker, agent, prompts):
    """A session that has heard the prompts, and how the last turn stopped."""
    session = await (await lab.client(worker)).start(agent, prompts[0], lifetime="open")
    for prompt in prompts[1:]:
        result = await session.invoke(prompt)
    return session, result


async def first_error(session, prompts):
    """What the first turn that fails fails with."""
    for prompt in prompts:
        try:
            await session.invoke(prompt)
        except AgentRunError as error:
            return str(error)
    raise AssertionError("no turn failed")


async def reduced(session):
    """The audit lines about reductions."""
    return [line.detail for line in await session.audit() if line.event == "conversation_reduced"]


async def test_a_summary_is_written_once_and_survives_a_crash(lab, trace):
    """The model for summaries is called in a step; its tokens count; nothing of it is repeated after SIGKILL."""
    worker = lab.worker("lab.talks")
    session, result = await talk(lab, worker, "summed", [*LONG[:5], "fetch" + "." * 300])
    assert result.stop_reason == "interrupt"
    [question] = await questions(session, 1)
    summed = trace.read_text().count("summed")
    worker.restart()
    done = await session.invoke((question.id, "y"))
    assert trace.read_text().count("summed") == summed == len(await reduced(session))
    messages = await history(session)
    assert is_summary(messages[0]) and "They said" in message_text(messages[0]) and history_faults(messages) == []
    lines = await reduced(session)
    assert lines[0]["summarised"] and lines[0]["why"] == "overflow" and lines[-1]["left"] < 10
    assert done.usage["outputTokens"] > lines[-1]["usage"]["outputTokens"] > 0
    assert STEP_ACTIVITY in await activities(lab, session, 6)


@pytest.mark.parametrize("agent", ["window", "summed"])
async def test_both_drivers_do_the_same(lab, trace, agent):
    """In-process and on a worker the conversation, the audit lines and the tokens are the same."""
    here = getattr(talks, agent)()
    for prompt in LONG:
        there = await here.invoke_async(prompt)
    session, result = await talk(lab, lab.worker("lab.talks"), agent, LONG)
    assert await history(session) == here.messages
    lines = [line.detail for line in here._here()._session.state.audit if line.event == "conversation_reduced"]
    assert await reduced(session) == lines != []
    assert result.usage == there.metrics.accumulated_usage


async def test_histories_with_reductions_replay(lab, trace):
    """A manager decides the same again: sessions and cycles replay, and no summary is written anew."""
    session, _ = await talk(lab, lab.worker("lab.talks"), "summed", LONG)
    written = trace.read_text()
    host.install(None, load_agents([talks.__name__]))
    replayer = Replayer(
        workflows=[AgentSession, AgentCycle],
        workflow_runner=policed_runner([talks.__name__]),
        interceptors=[IntakeGuard()],
        data_converter=pydantic_data_converter,
    )
    cycles = {line.cycle for line in await session.audit() if line.event == "conversation_reduced"}
    assert cycles
    for workflow in [session.id, *(f"{session.id}/cycle-{number}" for number in cycles)]:
        async with asyncio.timeout(60):
            await replayer.replay_workflow(await lab.history_of(workflow))
    assert trace.read_text() == written


async def test_a_window_slides_over_a_stored_conversation(lab, tmp_path, monkeypatch):
    """A turn with documents in external storage stays within its window; the references of what is left go on."""
    monkeypatch.setenv("COUNTERSIGN_STORAGE", f"file://{tmp_path / 'store'}")
    worker = lab.worker("lab.talks")
    session = await (await lab.client(worker)).start("reader", "read them")
    await session.result()
    messages = await history(session)
    assert history_faults(messages) == [] and message_text(messages[0]) == "read them"
    assert documents(messages) == [11]  # the prompt, the last exchange and the answer; one more would not fit
    assert {detail["left"] for detail in await reduced(session)} == {4, 5}


async def test_an_open_question_shows_the_whole_conversation(lab):
    """Nothing goes while a person is asked; it goes once the turn has ended."""
    worker = lab.worker("lab.talks")
    session = await (await lab.client(worker)).start("window", "fetch now", lifetime="open")
    [question] = await questions(session, 1)
    assert tool_uses((await history(session))[-1]) and await reduced(session) == []
    await session.invoke((question.id, "y"))
    await session.invoke("hello")
    assert [message_text(message) for message in await history(session)] == ["hello", "heard hel"]
    assert [(detail["why"], detail["removed"], detail["left"]) for detail in await reduced(session)] == [
        ("turn_ended", 2, 2),  # the call and its result
        ("turn_ended", 2, 2),
    ]


async def test_without_a_summary_the_session_is_as_it_was(lab, trace):
    """A turn whose summary fails fails by name; once summaries work again the next prompt goes on."""
    trace.with_suffix(".fails").touch()
    worker = lab.worker("lab.talks")
    session = await (await lab.client(worker)).start("summed", LONG[0], lifetime="open")
    error = await first_error(session, LONG[1:])
    assert "no summary of its oldest" in error and "ValueError: no key" in error
    assert message_text((await history(session))[0]) == LONG[0] and await reduced(session) == []
    trace.with_suffix(".fails").unlink()
    assert (await session.invoke("and now?")).stop_reason == "end_turn"
    assert is_summary((await history(session))[0])


async def test_a_deployed_manager_frees_a_waiting_session(lab):
    """Without a manager an overflow fails the turn and nothing is cut; deploy one, and the session goes on."""
    lab.package("plain_talk", agents=PLAIN_AGENT)
    worker = lab.worker("plain_talk.agents")
    session = await (await lab.client(worker)).start("plain", LONG[0], lifetime="open")
    error = await first_error(session, LONG[1:])
    assert "Nothing was cut" in error and "give it a conversation_manager" in error
    messages = await history(session)
    assert message_text(messages[0]) == LONG[0]
    with_manager = "Agent(Narrow(), conversation_manager=SlidingWindowConversationManager())"
    lab.package("plain_talk", agents=PLAIN_AGENT.replace("Agent(Narrow())", with_manager))
    worker.restart()
    assert (await session.invoke("and now?")).stop_reason == "end_turn"
    assert (await reduced(session))[0]["why"] == "overflow"


async def test_a_manager_that_reads_the_clock_fails_the_turn(lab):
    """A manager is policy code like a hook, and policed like one; the conversation stays."""
    worker = lab.worker("lab.talks")
    session = await (await lab.client(worker)).start("clock", "hello", lifetime="open")
    with pytest.raises(AgentRunError, match=r"Clock\.apply_management called time\.time.*step"):
        await session.invoke("again")
    assert message_text((await history(session))[0]) == "hello"
