"""Temporal's reset: the server sends recorded answers once more, and no call runs again on them."""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType
from tests.durable.test_waiting import questions
from tests.support.resetting import reset


async def task_after_question(lab, session):
    """Which finished workflow task of a session is the one before its answer came."""
    events = (await lab.history_of(session.id)).events
    completed = 0
    for event in events:
        if event.event_type in (
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
            EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        ):
            return completed - 1
        completed += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    raise AssertionError("no answer in the history")


@pytest.mark.parametrize("channel", ["update", "signal"])
async def test_a_session_that_is_reset_runs_nothing_again_on_the_old_answer(lab, client, channel):
    """The recorded answer comes once more; whether the call is to run again is a new question."""
    session = await lab.start(lab.worker(), "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    send = session.answer if channel == "update" else session.respond
    await send((question.id, "y"))
    await session.result()
    assert lab.effects() == ["a"]
    await reset(client, session.id, await task_after_question(lab, session))
    [doubt] = await unknown_outcome(session)
    assert lab.effects() == ["a"]
    await session.answer((doubt.id, "skip"))
    result = await session.result()
    assert "may or may not have run" in str(result.message)
    assert lab.effects() == ["a"]


async def unknown_outcome(session):
    """Wait until the session asks whether a call ran; approve it anew if the old answer came too early to count."""
    async with asyncio.timeout(60):
        while True:
            found = {question.name: question for question in await session.interrupts()}
            if "unknown-outcome" in found:
                return [found["unknown-outcome"]]
            if "call" in found:
                await session.answer((found["call"].id, "y"))
            await asyncio.sleep(0.05)


async def test_a_cycle_that_is_reset_runs_no_call_again(lab, client):
    """It may have run them before: nobody knows, so it stops there."""
    session = await lab.start(lab.worker(), "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.result()
    events = (await lab.history_of(session.id)).events
    children = [
        event.start_child_workflow_execution_initiated_event_attributes.workflow_id
        for event in events
        if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED
    ]
    assert len(children) > 1
    for child in children[1:]:
        await reset(client, child, 0)
        try:
            async with asyncio.timeout(60):
                await client.get_workflow_handle(child).result()
        except TimeoutError:
            seen = [EventType.Name(event.event_type) for event in (await lab.history_of(child)).events]
            raise AssertionError(f"{child} did not end: {seen}") from None
    assert lab.effects() == ["a"]
