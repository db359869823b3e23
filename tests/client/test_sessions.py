"""The client and the command with real sessions on a real worker."""

import asyncio
import json
import uuid
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from countersign.agent_client.cli import app
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.messages import message_text
from countersign.client import AgentRunError, SessionEndedError, SessionStatus

SOON = timedelta(seconds=30)


async def command(temporal_server, *words, code=0):
    """Run the command in a thread and check its exit code; standard output."""
    got = await asyncio.to_thread(CliRunner().invoke, app, [*words, "--address", temporal_server])
    assert got.exit_code == code, got.output
    return got.stdout if code == 0 else got.stderr


async def test_a_session_without_questions_gives_its_result(served):
    """The shortest way: start and wait."""
    result = await (await served.start("asker", "hello")).result()
    assert (result.stop_reason, message_text(result.message)) == ("end_turn", "you said: hello")


async def test_an_approval_runs_the_call_and_a_denial_does_not(served):
    """The question's own answers are sent, whatever they are."""
    session = await served.start("asker", "delete a b")
    first, second = await session.wait_for_questions(SOON)
    receipt = await session.approve(first.id, responder="ann", comment="fine")
    assert [item.status for item in receipt.accepted] == ["accepted"]
    assert receipt.open == [second.id]
    assert (await session.deny(second.id)).open == []
    assert message_text((await session.result()).message) == "deleted a; refused: {'go': False}"


async def test_the_audit_says_who_answered_and_what(served):
    """The claim and the comment are kept."""
    session = await served.start("asker", "delete a", lifetime="open")
    (question,) = await session.wait_for_questions(SOON)
    await session.approve(question.id, responder="ann", comment="fine")
    (line,) = [entry for entry in await session.audit() if entry.event == "answered"]
    assert line.detail["answer"]["responder"] == {"id": "ann"}
    assert line.detail["answer"]["comment"] == "fine"
    await session.close()


async def test_a_second_answer_is_refused_and_the_same_one_acknowledged(served):
    """The first answer wins."""
    session = await served.start("asker", "delete a b", resume="all")
    first, second = await session.wait_for_questions(SOON)
    await session.approve(first.id)
    again = await session.answer((first.id, {"go": True}))
    assert again.accepted[0].status == "already_recorded"
    with pytest.raises(AnswerRefused) as caught:
        await session.answer([(first.id, {"go": False}), (second.id, {"go": True})])
    assert caught.value.code == "already_answered"
    assert [question.id for question in await session.interrupts()] == [second.id]
    await session.stop()


async def test_a_verdict_sent_again_is_acknowledged(served, temporal_server):
    """A click that is delivered twice is one decision: as long as it is of the same person and to the same question."""
    session = await served.start("asker", "delete a b", lifetime="open")
    first, second = await session.wait_for_questions(SOON)
    click = {"digest": first.digest, "responder": "ana"}
    receipts = [await session.approve(first.id, **click) for _ in range(2)]
    assert [receipt.accepted[0].status for receipt in receipts] == ["accepted", "already_recorded"]
    assert receipts[1].open == [second.id]
    await session.deny(second.id)
    await session.wait_for_questions(SOON)
    assert (await session.approve(first.id, **click)).accepted[0].status == "already_recorded", "its turn is over"
    assert (await session.deny(second.id)).accepted[0].status == "already_recorded"
    said = await command(temporal_server, "approve", session.id, first.id, "--as", "ana")
    assert said == f"recorded before: really ({first.id})\n"
    others = ({**click, "responder": "bob"}, {**click, "digest": "0" * 64})
    for refused in (*(session.approve(first.id, **other) for other in others), session.deny(first.id, **click)):
        with pytest.raises(AnswerRefused, match="already answered by ana"):
            await refused
    await session.close()


async def test_a_decision_has_an_id_of_its_own(served):
    """Whatever is sent under it later gets its first outcome; one that is blank names nothing."""
    session = await served.start("asker", "delete a b")
    first, second = await session.wait_for_questions(SOON)
    receipt = await session.approve(first.id, update_id="click")
    assert await session.deny(second.id, update_id="click") == receipt
    assert [question.id for question in await session.interrupts()] == [second.id]
    for give in (session.approve, session.deny, lambda one, **words: session.answer((one, "y"), **words)):
        with pytest.raises(ValueError, match="blank"):
            await give(second.id, update_id=" ")
    await session.answer((second.id, {"go": True}), update_id="other click")
    assert message_text((await session.result()).message) == "deleted a; deleted b"


async def test_an_answer_to_what_the_person_did_not_see_is_refused(served):
    """The digest binds."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    with pytest.raises(AnswerRefused) as caught:
        await session.answer((question.id, {"go": True}), digest="0" * 64)
    assert caught.value.code == "outdated"
    await session.stop()
    assert (await session.result()).stop_reason == "cancelled"


@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_a_verdict_is_bound_to_what_was_seen(served, verdict):
    """With another digest than the question has, it is refused; with a short one, it is not sent at all."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    give = getattr(session, verdict)
    with pytest.raises(AnswerRefused) as caught:
        await give(question.id, digest="0" * 64)
    assert caught.value.code == "outdated"
    for short in ("", question.digest[:15]):
        with pytest.raises(ValueError, match="16 or more digits"):
            await give(question.id, digest=short)
    assert (await give(question.id, digest=question.digest)).open == []
    await session.result()


async def test_invoke_is_like_calling_the_agent(served):
    """It returns with questions, and with the answers' outcome."""
    session = await served.start("asker", "hello", lifetime="open")
    assert await session.wait_for_questions(SOON) == []
    asked = await session.invoke("delete a")
    assert asked.stop_reason == "interrupt"
    done = await session.invoke([(asked.interrupts[0].id, {"go": True})])
    assert message_text(done.message) == "deleted a"
    await session.close()
    assert (await session.result()).turn == 2


async def test_invokes_and_questions_go_on_across_continue_as_new(served, served_queue, tmp_path):
    """A session that starts a new run after every few events is one session to its callers."""
    argument = {"protocol": 1, "agent": "asker", "prompt": "hello", "lifetime": "open", "continue_after_events": 1}
    session_id = f"asker-{uuid.uuid4().hex[:8]}"
    started = await served.temporal.start_workflow("AgentSession", argument, id=session_id, task_queue=served_queue)
    session = served.session(session_id)
    gates, invoking = [tmp_path / f"go-{number}" for number in range(4)], []
    for number, gate in enumerate(gates):
        invoking.append(asyncio.create_task(session.invoke(f"hold {gate}")))
        await until_turn(session, 2, number)
    for gate, waiting in zip(gates, invoking, strict=True):  # a turn lasts until the one before it has been told
        gate.touch()
        assert message_text((await waiting).message) == f"held until {gate}"
    asked = await session.invoke("delete a")
    assert (await session.approve(asked.interrupts[0].id)).open == []
    assert await session.wait_for_questions(SOON) == []
    assert (await session.status())["turn"] == 6
    assert (await served.temporal.get_workflow_handle(session_id).describe()).run_id != started.first_execution_run_id
    await session.close()
    assert (await session.result()).turn == 6


async def until_turn(session, turn, queued):
    """Wait until a turn runs, and so many prompts behind it."""
    async with asyncio.timeout(60):
        while (status := await session.status())["turn"] != turn or status["queued_prompts"] != queued:
            await asyncio.sleep(0.05)


async def test_a_failed_turn_raises_with_type_and_text(served):
    """Both while the session stays open and at its end."""
    with pytest.raises(AgentRunError, match="the model refused it"):
        await (await served.start("asker", "fail")).result()
    session = await served.start("asker", "hello", lifetime="open")
    with pytest.raises(AgentRunError) as caught:
        await session.invoke("fail")
    assert caught.value.error_type
    await session.close()


async def test_signals_prompt_and_respond_reach_the_session(served):
    """Fire and forget."""
    session = await served.start("asker", "hello", lifetime="open")
    await session.wait_for_questions(SOON)
    await session.prompt("delete a")
    (question,) = await session.wait_for_questions(SOON)
    await session.respond((question.id, {"go": True}))
    assert await session.wait_for_questions(SOON) == []
    texts = [message_text(message) async for message in session.transcript()]
    assert texts[-1] == "deleted a"
    [answered] = [line.detail["answer"] for line in await session.audit() if line.event == "answered"]
    assert answered["said_at"] < answered["at"], "an approval lapses from when it was sent"
    await session.prompt("delete b")
    (question,) = await session.wait_for_questions(SOON)
    own = {"interruptId": question.id, "response": {"go": True}, "at": question.asked_at}
    await session.respond({"interruptResponse": own})
    assert await session.wait_for_questions(SOON) == [], "a time that is given stands"
    await session.close()


async def test_a_terminated_session_asks_nothing_any_more(served):
    """A question that can't be answered is withdrawn wherever it is shown."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    await served.temporal.get_workflow_handle(session.id).terminate()
    assert await session.interrupts() == []
    status = await session.status()
    assert (status["status"], status["ended"], status["open_questions"]) == ("closed", "terminated", 0)
    assert set(status) == SessionStatus.__required_keys__
    with pytest.raises(SessionEndedError):
        await session.answer((question.id, {"go": True}))


async def test_what_waits_is_listed_with_its_questions_and_without_what_is_answered(served):
    """From the memo, a moment after it is asked."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)

    async def listed(expected):
        async with asyncio.timeout(60):
            while True:
                found = [item async for item in served.waiting("asker") if item.session_id == session.id]
                if bool(found) is expected:
                    return found
                await asyncio.sleep(0.1)

    (found,) = await listed(True)
    assert found.agent == "asker"
    assert [card["id"] for card in found.questions] == [question.id]
    await session.approve(question.id)
    assert await listed(False) == []


async def test_the_command_shows_and_answers(served, served_queue, temporal_server):
    """Start, look, approve as the card says, and see the end."""
    words = ("--task-queue", served_queue, "--wait", "--json")
    started = json.loads(await command(temporal_server, "start", "asker", "delete a", *words))
    (question,) = started["interrupts"]
    card = await command(temporal_server, "interrupts", started["session_id"])
    line = f"approve {started['session_id']} {question['id']} --digest {question['digest'][:16]}"
    assert f"countersign {line}" in card
    assert "will run delete" in card
    assert "approved: really" in await command(temporal_server, *line.split(), "--as", "ann", "--comment", "fine")
    await served.session(started["session_id"]).result()
    shown = await command(temporal_server, "show", started["session_id"])
    assert "deleted a" in shown
    assert "answered" in shown


async def test_the_command_asks_which_of_two_and_takes_all(served, served_queue, temporal_server):
    """Exit code 2 with the list; --all answers both."""
    session = await served.start("asker", "delete a b")
    first, second = await session.wait_for_questions(SOON)
    error = await command(temporal_server, "deny", session.id, code=2)
    assert first.id in error
    assert second.id in error
    await command(temporal_server, "deny", session.id, "--all")
    assert "refused" in message_text((await session.result()).message)


async def test_the_command_sends_json_values_with_their_type(served, temporal_server):
    """An object arrives as an object; a refusal exits with 1 and its code."""
    session = await served.start("asker", "delete a")
    (question,) = await session.wait_for_questions(SOON)
    await command(temporal_server, "respond", session.id, question.id, '{"go": true}', "--json-value")
    assert message_text((await session.result()).message) == "deleted a"
    assert "has ended" in await command(temporal_server, "respond", session.id, question.id, "y", code=1)


async def test_the_command_waits_for_a_result_and_fails_with_the_turn(served, served_queue, temporal_server):
    """A failed turn is exit code 1."""
    words = ("--task-queue", served_queue, "--wait")
    assert "you said: hi" in await command(temporal_server, "start", "asker", "hi", *words)
    assert "the model refused it" in await command(temporal_server, "start", "asker", "fail", *words, code=1)
