"""Many messages at once, and messages at the worst moment: none lost, none taken twice, no workflow task failed."""

import asyncio
import json
from collections import Counter

import pytest
from temporalio.client import (
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode
from tests.crash.histories import events_of, failed_tasks, runs_of
from tests.durable.test_intake import plain, signal
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions, until_status

from countersign.agent_client.errors import SessionEndedError
from countersign.agent_client.translation import UPDATE_LOST
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.messages import history_faults


def block(question_id: str, response: object) -> dict:
    return {"interruptResponse": {"interruptId": question_id, "response": response}}


def code_of(error: WorkflowUpdateFailedError) -> str:
    """The code of a refusal; the cause itself if it is none."""
    return str(getattr(error.cause, "type", error.cause))


async def until_queued(session, count: int) -> None:
    """Wait until so many prompts of a session wait for their turn."""
    async with asyncio.timeout(60):
        while (await session.status())["queued_prompts"] != count:
            await asyncio.sleep(0.05)


async def until_continued(client, session_id: str, update_id: str) -> None:
    """Wait until a session has been continued as new since it took an update."""
    async with asyncio.timeout(60):
        while any(
            event.workflow_execution_update_accepted_event_attributes.protocol_instance_id == update_id
            for event in await events_of(client, session_id)
        ):
            await asyncio.sleep(0.05)


async def test_500_answers_to_50_questions_in_one_burst(lab, client):
    """Ten answers for each question, by signal, all at once: the first one counts, each call runs or not by it."""
    worker = lab.worker()
    labels = [f"n{number}" for number in range(50)]
    prompt = f"effects={lab.effects_file} " + " ".join(f"effect:{label}" for label in labels)
    session = await lab.start(worker, "per-call", prompt, lifetime="open", continue_after_events=200)
    asked = await questions(session, 50)
    wanted = {question.id: ("y" if place % 2 else "n") for place, question in enumerate(asked)}
    first = [plain([block(question, answer)]) for question, answer in wanted.items()]
    await asyncio.gather(*(signal(client, session.id, "respond", [payload]) for payload in first))
    again = [plain([block(question, answer)]) for question in wanted for answer in ["y", "n", "maybe"] * 3]
    await asyncio.gather(*(signal(client, session.id, "respond", [payload]) for payload in again))
    await until_status(session, "idle")
    labels_by_id = {question.id: str(question.reason["label"]) for question in asked}
    approved = Counter(labels_by_id[question] for question, answer in wanted.items() if answer == "y")
    assert Counter(lab.effects()) == approved
    assert history_faults(await history(session)) == []
    assert await failed_tasks(client, session.id) == []
    await session.close()


async def test_two_operators_at_once_get_one_winner_for_each_question(lab, client):
    """Both answer everything, otherwise; each question takes one, the other operator is told, and no yes is lost."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} " + " ".join(f"effect:n{number}" for number in range(12))
    session = await lab.start(worker, "per-call", prompt, lifetime="open", resume="all")
    asked = await questions(session, 12)

    codes: set[str] = set()

    async def answer(question, response: str) -> bool:
        try:
            await session.answer((question.id, response), responder=f"the one who says {response}")
        except AnswerRefused as refused:
            codes.add(refused.code)
            return False
        return True

    yes = [answer(question, "y") for question in asked]
    no = [answer(question, "n") for question in asked]
    taken = await asyncio.gather(*(one for pair in zip(yes, no, strict=True) for one in pair))
    assert [first + second for first, second in zip(taken[::2], taken[1::2], strict=True)] == [1] * 12
    assert codes <= {"already_answered", "not_interrupted"}
    await until_status(session, "idle")
    approved = sorted(str(q.reason["label"]) for q, won in zip(asked, taken[::2], strict=True) if won)
    assert sorted(lab.effects()) == approved
    assert await failed_tasks(client, session.id) == []
    await session.close()


async def test_answers_through_continue_as_new_are_all_taken(lab, client):
    """A session that is continued as new after every few events loses no answer that it has acknowledged."""
    worker = lab.worker()
    labels = sorted(f"n{number}" for number in range(10))
    prompt = f"effects={lab.effects_file} " + " ".join(f"effect:{label}" for label in labels)
    session = await lab.start(worker, "per-call", prompt, lifetime="open", continue_after_events=10)
    asked = await questions(session, 10)
    await asyncio.gather(*(session.answer((question.id, "y")) for question in asked))
    await until_status(session, "idle")
    assert sorted(lab.effects()) == labels
    assert len(await runs_of(client, session.id)) > 1
    assert await failed_tasks(client, session.id) == []
    await session.close()


async def test_an_update_sent_again_in_a_later_run_gets_its_first_outcome(lab, client):
    """One id, one outcome, across continue-as-new; other content under that id is refused."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a effect:b"
    session = await lab.start(worker, "per-call", prompt, lifetime="open", continue_after_events=8)
    first, second = await questions(session, 2)

    async def send(response: str):
        handle = client.get_workflow_handle(session.id)
        return await handle.execute_update("answer", [block(first.id, response)], id="the-one")

    before = await send("y")
    await until_continued(client, session.id, "the-one")
    await questions(session, 1)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await send("n")  # first: what a run has taken under an id, the server itself gives out again
    assert code_of(refused.value) == "update_id_reused"
    assert await send("y") == before
    await session.answer((second.id, "n"))
    await until_status(session, "idle")
    assert lab.effects() == ["a"]
    await session.close()


async def test_an_invoke_that_waits_is_moved_to_the_next_run(lab, client):
    """Continue-as-new between its cycles does not fail an invoke; the client gets the turn's own result."""
    worker = lab.worker()
    session = await lab.start(worker, "loop", None, lifetime="open", handover_after_s=0, continue_after_events=15)
    result = await session.invoke("loop:6")
    assert (result.stop_reason, result.state) == ("end_turn", {"models": 7})
    assert len(await runs_of(client, session.id)) > 1
    await session.close()


async def test_a_prompt_that_a_stop_takes_away_is_cancelled(lab, client):
    """Its invoke does not return the result of the turn before it; more prompts than are kept are refused."""
    worker = lab.worker()
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a", lifetime="open")
    await until_effects(lab, "a-began")
    queued = asyncio.create_task(session.invoke("later"))
    await until_queued(session, 1)  # the first of those that wait
    for number in range(25):
        await session.prompt(f"prompt {number}")
    with pytest.raises(AnswerRefused, match="20 prompts wait"):
        await session.invoke("one more")
    await session.stop()
    lab.let_go()
    result = await queued
    assert (result.stop_reason, result.message) == ("cancelled", None)
    refused = [line.detail["code"] for line in await session.audit() if line.event == "refused"]
    assert refused.count("too_many_waiting") == 6
    await session.close()


async def test_an_answer_sent_again_is_told_what_is_open_now(lab, client):
    """Hundreds of receipts are not kept with all the questions that were open then."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a effect:b"
    session = await lab.start(worker, "per-call", prompt, resume="all", lifetime="open", continue_after_events=10)
    first, second = await questions(session, 2)
    handle = client.get_workflow_handle(session.id)
    once = await handle.execute_update("answer", [block(first.id, "y")], id="mine")
    assert once["open"] == [second.id]
    await session.answer((second.id, "y"))
    await until_status(session, "idle")
    await session.invoke("more")
    await until_continued(client, session.id, "mine")  # in the same run the server itself would give the same answer
    again = await handle.execute_update("answer", [block(first.id, "y")], id="mine")
    assert again == {**once, "open": []}
    await session.close()


ENDED = {"closed", *UPDATE_LOST, RPCStatusCode.NOT_FOUND.name}
"""What is told of an update that comes when a session is at its end or over."""


async def test_what_waits_when_a_session_ends_is_told(lab, client):
    """Taken in one go after the worker was away: an answer, its rival, a close, a late answer. Each has an outcome."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a", lifetime="open")
    [question] = await questions(session, 1)
    worker.kill()
    handle = client.get_workflow_handle(session.id)
    late = {"already_answered", "withdrawn", "not_interrupted"}
    sent = [
        ("answer", [block(question.id, "y")], late),
        ("answer", [block(question.id, "n")], late),
        ("invoke", [block(question.id, "y")], late),
        ("close", {}, set()),
        ("answer", [block("int-none", "y")], {"unknown_interrupt", "not_interrupted"}),
        ("invoke", "too late", {"interrupted"}),
    ]

    async def outcome(name: str, argument: object) -> dict | str:
        try:
            update = await handle.start_update(name, argument, wait_for_stage=WorkflowUpdateStage.COMPLETED)
            found: dict = await update.result()
            return found
        except WorkflowUpdateFailedError as error:
            return code_of(error)
        except RPCError as error:
            return error.status.name

    waiting = [asyncio.create_task(outcome(name, argument)) for name, argument, _ in sent]
    await asyncio.to_thread(worker.start)  # they are sent meanwhile
    async with asyncio.timeout(60):
        outcomes = await asyncio.gather(*waiting)
    for (_, _, refusals), found in zip(sent, outcomes, strict=True):
        assert isinstance(found, dict) or found in refusals | ENDED, outcomes
    assert isinstance(outcomes[4], str)  # what was never asked is never answered
    assert sum("accepted" in found for found in outcomes if isinstance(found, dict)) <= 1, outcomes
    await until_ended(session)
    assert lab.effects() in ([], ["a"])
    assert await failed_tasks(client, session.id) == []
    with pytest.raises(SessionEndedError):
        await session.answer((question.id, "y"))


async def until_ended(session) -> None:
    """Wait until a session's workflow has ended."""
    async with asyncio.timeout(60):
        while not (await session.summary()).ended:
            await asyncio.sleep(0.05)


async def test_signal_with_start_answers_nothing_and_prompts_what_is_open(lab, client):
    """An answer that comes with the start is early: recorded as refused; a prompt that comes so runs."""
    worker = lab.worker()

    async def start(name: str, argument: object, prompt: object):
        session_id = f"with-start-{name}-{worker.queue}"
        given = {"agent": "per-call", "prompt": prompt, "lifetime": "open"}
        signalled = {"start_signal": name, "start_signal_args": [argument]}
        await client.start_workflow("AgentSession", given, id=session_id, task_queue=worker.queue, **signalled)
        return (await lab.client(worker)).session(session_id)

    early = await start("respond", [block("int-1-0-0000000000000000", "y")], f"effects={lab.effects_file} effect:a")
    [question] = await questions(early, 1)
    refused = [line for line in await early.audit() if line.event == "refused"]
    assert [line.detail["code"] for line in refused] == ["not_interrupted"]
    prompted = await start("prompt", f"effects={lab.effects_file} effect:b", None)
    [other] = await questions(prompted, 1)
    assert other.reason == {"label": "b"}
    stopped = await start("stop", {}, "hello")
    await until_status(stopped, "idle")
    for session in (early, prompted, stopped):
        await session.stop()
        await session.close()
        assert await failed_tasks(client, session.id) == []
    assert (lab.effects(), question.status) == ([], "open")


async def test_update_with_start_is_one_call_to_an_agent(lab, client):
    """`invoke` with the start returns the turn's result; a refused one leaves a session that works."""
    worker = lab.worker()

    async def call(argument: object, session_id: str):
        start = WithStartWorkflowOperation(
            "AgentSession", {"agent": "free", "lifetime": "open"}, id=session_id, task_queue=worker.queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )  # fmt: skip
        return await client.execute_update_with_start_workflow("invoke", argument, start_workflow_operation=start)

    first, second = f"called-{worker.queue}", f"refused-{worker.queue}"
    said = [await call("hello", first), await call("again", first)]
    assert [result["message"]["content"][0]["text"] for result in said] == ["you said: hello", "you said: again"]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await call("  ", second)
    assert code_of(refused.value) == "empty"
    session = (await lab.client(worker)).session(second)
    assert (await session.invoke("hello")).stop_reason == "end_turn"
    assert await failed_tasks(client, second) == []


async def test_a_flood_of_garbage_keeps_no_answer_out(lab, client):
    """300 malformed signals around one good answer: it is taken, and the session is not much larger for them."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a", lifetime="open")
    [question] = await questions(session, 1)
    noise = [plain(json.dumps({"n": number})) for number in range(300)]
    sending = asyncio.gather(*(signal(client, session.id, "respond", [payload]) for payload in noise))
    receipt = await session.answer((question.id, "y"))
    await sending
    assert [item.status for item in receipt.accepted] == ["accepted"]
    await until_status(session, "idle")
    assert lab.effects() == ["a"]
    assert await failed_tasks(client, session.id) == []
    await session.close()
