"""Whatever is sent to a session: an effect, a clear refusal or a recorded one. Nothing wedges."""

import asyncio
import json

import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import WithStartWorkflowOperation, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from tests.durable.test_waiting import questions, until_status

from countersign.agent_core.errors import AnswerRefused


def plain(value: object) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


GARBAGE = [
    [],
    [plain([]), plain([])],
    [plain(None)],
    [plain("text")],
    [plain(7)],
    [plain([])],
    [plain([{"interruptResponse": {"interruptId": "x"}}])],
    [plain([{"interruptResponse": {"response": "y"}}])],
    [plain([{"interruptResponse": {"interruptId": ["x"], "response": "y"}}])],
    [Payload(metadata={"encoding": b"json/plain"}, data=b"{not json")],
    [Payload(metadata={"encoding": b"binary/unknown"}, data=b"\x00\x01")],
    [Payload(metadata={"encoding": b"binary/plain"}, data=b"\x00\x01")],
    [Payload(data=b"no encoding")],
    [Payload()],
]


async def signal(client, session_id: str, name: str, payloads: list[Payload]) -> None:
    """Send a signal as no SDK would."""
    await client.workflow_service.signal_workflow_execution(
        SignalWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=session_id),
            signal_name=name,
            input=Payloads(payloads=payloads),
        ),
        retry=True,  # "workflow is closing", while it is continued as new
    )


async def failed_tasks(client, session_id: str) -> int:
    history = client.get_workflow_handle(session_id).fetch_history_events()
    return sum([event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED async for event in history])


async def test_malformed_signals_are_recorded_and_nothing_wedges(lab, client):
    """Every malformed respond and prompt, unknown signals too; then a good answer still works."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    for name in ("respond", "prompt", "nonsense"):
        for payloads in GARBAGE:
            await signal(client, session.id, name, payloads)
    await signal(
        client, session.id, "respond", [plain([{"interruptResponse": {"interruptId": "int-none", "response": 1}}])]
    )
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0
    refused = [line for line in await session.audit() if line.event == "refused"]
    assert len(refused) >= 2 * len(GARBAGE), "each one that could be decoded at all left a line"
    assert {line.detail["what"] for line in refused} == {"respond", "prompt", "nonsense"}
    assert "unknown_interrupt" in {line.detail["code"] for line in refused}


async def test_malformed_updates_are_refused_with_a_code(lab, client):
    """Updates with any garbage are rejected, none enters the history, none wedges."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    handle = client.get_workflow_handle(session.id)
    for name in ("answer", "invoke"):
        for arguments in ([], [None], ["x", "y"], [7], [[]], [{"interruptResponse": {}}], [{"responses": "x"}]):
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(name, args=arguments)
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update("no-such-update", args=[1])
    await session.answer((question.id, "y"))
    await session.result()
    assert await failed_tasks(client, session.id) == 0


async def test_answers_are_refused_by_code(lab):
    """Unknown, duplicate, outdated, second and late answers, and answers before any question."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a effect:b", lifetime="open")
    first, second = await questions(session, 2)

    async def code(*answers, **more) -> str:
        with pytest.raises(AnswerRefused) as refused:
            await session.answer(*answers, **more)
        return refused.value.code

    block = {"interruptResponse": {"interruptId": first.id, "response": "y"}}
    assert await code(("int-none", "y")) == "unknown_interrupt"
    assert await code([block, {"interruptResponse": {"interruptId": first.id, "response": "n"}}]) == "duplicate"
    twice = [{**block, "digest": "0" * 64}, block]
    assert await code(twice) == "duplicate"
    with pytest.raises(AnswerRefused, match="stands twice"):
        await session.invoke(twice)
    assert (
        await code([block, {"interruptResponse": {"interruptId": "int-none", "response": "n"}}]) == "unknown_interrupt"
    )
    assert len(await session.interrupts()) == 2, "a batch with one bad answer changes nothing"
    assert await code((first.id, "y"), digest="0" * 64) == "outdated"
    with pytest.raises(AnswerRefused) as refused:
        await session.invoke("a prompt while interrupted")
    assert refused.value.code == "interrupted"
    await session.answer((first.id, "y"))
    assert (await session.answer((first.id, "y"))).accepted[0].status == "already_recorded"
    assert await code((first.id, "n")) in ("already_answered", "withdrawn")
    await session.answer((second.id, "n"))
    await until_status(session, "idle")
    assert await code((first.id, "y")) == "not_interrupted"
    assert lab.effects() == ["a"]
    await session.close()


async def test_a_bad_start_fails_clearly(lab, client):
    """An unknown agent, an empty prompt, a bad option, an id in use: an error that names it."""
    worker = lab.worker()
    unknown = await lab.start(worker, "nobody", "hello")
    with pytest.raises(Exception, match="no agent named 'nobody'"):
        await unknown.result()
    for argument, text in (
        ({"agent": "free", "prompt": "  "}, "prompt is empty"),
        ({"agent": "free"}, "prompt is empty"),
        ({"agent": 3, "prompt": "x"}, "agent"),
        ({"agent": "free", "prompt": "x", "lifetime": "for ever"}, "lifetime"),
        ("text", "object"),
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await client.execute_workflow("AgentSession", argument, id=f"bad-{id(text)}", task_queue=worker.queue)
        assert text in str(failed.value.cause)
    await client.start_workflow(
        "AgentSession", {"agent": "free", "lifetime": "open"}, id="twice", task_queue=worker.queue
    )
    with pytest.raises(WorkflowAlreadyStartedError):
        await client.start_workflow(
            "AgentSession", {"agent": "free", "prompt": "x"}, id="twice", task_queue=worker.queue
        )


async def test_a_session_of_one_turn_takes_no_second_prompt_before_it_has_begun(lab, client):
    """By signal or `invoke`: its result is that of the prompt which it was started with, and nothing else runs."""
    worker = lab.worker()
    argument = {"protocol": 1, "agent": "free", "prompt": f"effects={lab.effects_file} effect:a"}
    another = f"effects={lab.effects_file} effect:b"
    signalled = await client.start_workflow(
        "AgentSession", argument, id="one-turn", task_queue=worker.queue,
        start_signal="prompt", start_signal_args=[another],
    )  # fmt: skip
    invoked = WithStartWorkflowOperation(
        "AgentSession", argument, id="one-turn-invoked", task_queue=worker.queue,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
    )  # fmt: skip
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await client.execute_update_with_start_workflow("invoke", another, start_workflow_operation=invoked)
    assert isinstance(refused.value.cause, ApplicationError) and refused.value.cause.type == "closed"
    results = [await handle.result() for handle in (signalled, await invoked.workflow_handle())]
    assert ([result["turn"] for result in results], lab.effects()) == ([1, 1], ["a", "a"])


async def test_a_cycle_runs_only_under_a_session(lab, client):
    """AgentCycle refuses to run without a session as its parent."""
    worker = lab.worker()
    with pytest.raises(WorkflowFailureError) as failed:
        await client.execute_workflow("AgentCycle", {"agent": "free"}, id="stray", task_queue=worker.queue)
    assert "child of an AgentSession" in str(failed.value.cause)


async def test_values_that_are_too_large_are_named_errors(lab, client):
    """3 MB inputs, results and answers and four 1.5 MB inputs: an error by name, no terminated workflow."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} big:3000000", lifetime="open")
    [question] = await questions(session, 1)
    with pytest.raises(Exception, match="bytes"):
        await session.answer((question.id, "x" * 3_000_000))
    with pytest.raises(AnswerRefused) as refused:
        await session.answer((question.id, "x" * 900_000))
    assert refused.value.code == "too_large"
    result = await session.invoke([{"interruptResponse": {"interruptId": question.id, "response": "y"}}])
    assert "too large" in result.message["content"][0]["text"]
    await session.close()
    for prompt in ("swallow:3000000", "swallow:1500000 swallow:1500001 swallow:1500002 swallow:1500003"):
        session = await lab.start(worker, "free", prompt)
        with pytest.raises(Exception, match="bytes"):
            await session.result()
        history = await lab.history_of(session.id)
        assert history.events[-1].event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED
        assert await failed_tasks(client, session.id) == 0


async def test_a_result_that_is_too_large_leaves_the_other_questions_open(lab):
    """It becomes an error result of its call; what waits beside it waits on, and is answered as ever."""
    worker = lab.worker()
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} big:3000000 effect:b")
    large, other = await questions(session, 2)
    await session.answer((large.id, "y"))
    assert [question.id for question in await questions(session, 1)] == [other.id]
    await session.answer((other.id, "y"))
    text = (await session.result()).message["content"][0]["text"]
    assert "too large to keep" in text and text.endswith("did b")


async def test_a_missing_search_attribute_wedges_nothing(lab, tmp_path):
    """On a namespace that takes none of our attributes, sessions run and wait all the same."""
    from countersign.agent_client.dev_server import DevServer

    source = (
        "from countersign.activities import search_attributes as room\n"
        "async def none(client):\n    return list(room.ATTRIBUTES)\n"
        "import __main__\n__main__.register = none\nfrom lab.agents import *\n"
    )
    lab.package("unregistered", agents=source)
    async with DevServer() as server:
        lab.address = server.address
        worker = lab.worker("unregistered.agents")
        session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
        [question] = await questions(session, 1)
        agents = await lab.client(worker)
        async with asyncio.timeout(60):  # the list of sessions follows after a moment
            while not (listed := [item.session_id async for item in agents.waiting()]):
                await asyncio.sleep(0.1)
        assert listed == [session.id]
        await session.answer((question.id, "y"))
        assert (await session.result()).stop_reason == "end_turn"
