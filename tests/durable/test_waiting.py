"""A session that waits survives its workers, and every channel can answer it."""

import asyncio
import json
import subprocess
import sysconfig
from pathlib import Path

from tests.crash.reference import patiently

from countersign.agent_core.messages import history_faults
from countersign.client import SessionHandle

BIN = Path(sysconfig.get_path("scripts"))


async def questions(session: SessionHandle, count: int, within_s: float = 60):
    """Wait until exactly so many questions are open."""
    try:
        async with asyncio.timeout(within_s):
            while len(found := await patiently(session.interrupts)) != count:
                await asyncio.sleep(0.05)
    except TimeoutError:
        seen = [line.model_dump_json() for line in await session.audit()]
        raise AssertionError(f"{await session.status()}\n" + "\n".join(seen)) from None
    return found


async def until_status(session: SessionHandle, *wanted: str) -> None:
    """Wait until a session says that it is one of these."""
    async with asyncio.timeout(60):
        while (await patiently(session.status))["status"] not in wanted:
            await asyncio.sleep(0.05)


async def history(session: SessionHandle):
    return [message async for message in session.transcript()]


async def test_three_kinds_of_waits_survive_sigkill_and_four_channels_answer(lab):
    """Batch, per-call and tool-body questions: each effect once, nothing asked again, history valid."""
    worker = lab.worker()
    client = await lab.client(worker)
    log = lab.effects_file
    batch = await client.start("batch", f"effects={log} effect:b1 effect:b2")
    two = await client.start("per-call", f"effects={log} effect:c1 effect:c2")
    twice = await client.start("free", f"effects={log} asks_twice:t")
    [on_batch] = await questions(batch, 1)
    first, second = await questions(two, 2)
    [on_tool] = await questions(twice, 1)
    worker.restart()

    signal = [{"interruptResponse": {"interruptId": on_batch.id, "response": "y"}}]
    command = [BIN / "temporal", "workflow", "signal", "--address", lab.address, "--workflow-id", batch.id]
    subprocess.run([*command, "--name", "respond", "--input", json.dumps(signal)], check=True, capture_output=True)
    await two.answer((first.id, "y"))
    await two.respond((second.id, "n"))
    answer = [BIN / "countersign", "respond", twice.id, on_tool.id, "one"]
    subprocess.run([*answer, "--address", lab.address], check=True, capture_output=True)
    [again] = await questions(twice, 1)
    assert (again.name, again.reason) == ("second", {"label": "t", "first": "one"})
    results = [await session.result() for session in (batch, two)]  # killed in a call, the worker would leave a doubt
    worker.restart()
    await twice.answer((again.id, "two"))

    results.append(await twice.result())
    assert [result.stop_reason for result in results] == ["end_turn"] * 3
    assert sorted(lab.effects()) == ["b1", "b2", "c1", "t-one-two"]
    for session in (batch, two, twice):
        assert history_faults(await history(session)) == []
    asked = [line for line in await two.audit() if line.event == "answered"]
    assert [line.detail["name"] for line in asked] == ["call", "call"]


async def test_a_waiting_session_is_continued_as_new_with_everything(lab):
    """Questions, trust, agent state and a handler's counter are carried over continue-as-new."""
    worker = lab.worker()
    session = await lab.start(
        worker, "per-call", f"effects={lab.effects_file} effect:a effect:b", lifetime="open", continue_after_events=8
    )
    first, second = await questions(session, 2)
    await session.answer((first.id, "y"))
    async with asyncio.timeout(60):  # killed in its call, the worker would leave an unknown outcome, and a question
        while lab.effects() != ["a"]:
            await asyncio.sleep(0.05)
    await until_status(session, "waiting")
    await questions(session, 1)
    begun = (await lab.history_of(session.id)).events[0].workflow_execution_started_event_attributes
    assert begun.continued_execution_run_id, "the session has not been continued as new"
    assert (await session.interrupts())[0].id == second.id
    worker.restart()
    result = await session.invoke([{"interruptResponse": {"interruptId": second.id, "response": "y"}}])
    assert result.stop_reason == "end_turn"
    assert result.state == {"decided": 2}, "each call was counted once, over a pause and two runs"
    assert lab.effects() == ["a", "b"]
    await session.close()


async def test_trust_is_carried_over_turns_restarts_and_runs(lab):
    """A "t" holds for the session's later calls of that tool, and for no other tool."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a"
    session = await lab.start(worker, "hitl", prompt, lifetime="open", continue_after_events=8)
    [question] = await questions(session, 1)
    assert question.answers == {"approve": "y", "deny": "n", "trust": "t"}
    result = await session.invoke([{"interruptResponse": {"interruptId": question.id, "response": "t"}}])
    assert result.stop_reason == "end_turn"
    worker.restart()
    result = await session.invoke(f"effects={lab.effects_file} effect:b")
    assert (result.stop_reason, lab.effects()) == ("end_turn", ["a", "b"])
    result = await session.invoke(f"effects={lab.effects_file} held:c")
    assert result.stop_reason == "interrupt"
    await session.stop()
    await session.close()


async def test_a_long_turn_is_continued_as_new_between_its_cycles(lab):
    """A turn of many cycles does not outgrow its session's history, and counts go on."""
    worker = lab.worker()
    session = await lab.start(worker, "loop", "loop:6", handover_after_s=0, continue_after_events=20)
    result = await session.result()
    assert (result.stop_reason, result.state) == ("end_turn", {"models": 7})
    begun = (await lab.history_of(session.id)).events[0].workflow_execution_started_event_attributes
    assert begun.continued_execution_run_id


async def test_a_batch_can_be_seen_with_the_questions_that_are_answered(lab, client):
    """The query `interrupts` shows what is open; asked for all, the answered ones of the batch too."""
    session = await lab.start(lab.worker(), "per-call", "effect:a effect:b", resume="all")
    first, second = await questions(session, 2)
    await session.answer((first.id, "n"))
    handle = client.get_workflow_handle(session.id)
    assert [one["id"] for one in await handle.query("interrupts")] == [second.id]
    both = await handle.query("interrupts", {"all": True})
    assert [(one["id"], one["status"]) for one in both] == [(first.id, "answered"), (second.id, "open")]


async def test_resume_all_waits_for_the_whole_batch_and_says_so(lab):
    """With resume="all" a partial answer runs nothing; the session shows as waiting, and an invoke returns."""
    worker = lab.worker()
    prompt = f"effects={lab.effects_file} effect:a effect:b"
    session = await lab.start(worker, "per-call", prompt, lifetime="open", resume="all")
    first, second = await questions(session, 2)
    result = await session.invoke([{"interruptResponse": {"interruptId": first.id, "response": "y"}}])
    assert (result.stop_reason, [item.id for item in result.interrupts]) == ("interrupt", [second.id])
    assert (await session.status())["status"] == "waiting"
    assert lab.effects() == []
    result = await session.invoke([{"interruptResponse": {"interruptId": second.id, "response": "y"}}])
    assert result.stop_reason == "end_turn"
    assert sorted(lab.effects()) == ["a", "b"]
    await session.close()
