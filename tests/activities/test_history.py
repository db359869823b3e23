"""Reading what a failed cycle had finished: never "never started" unless that is certain."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.worker import Worker
from tests.activities.calls import PassesOn, served, tool_call

from countersign import ScriptedModel, ToolContext, tool
from countersign.activities.registry import activities_for
from countersign.activities.segments import Segments
from countersign.agent_core.messages import assistant_text, user_message
from countersign.agent_core.wire import MODEL_ACTIVITY, READ_CYCLE_ACTIVITY, ModelCall, Recovery

BEGAN = asyncio.Event()


@tool
async def quick() -> str:
    """End at once."""
    return "done"


@tool
async def endless() -> str:
    """Never end."""
    BEGAN.set()
    await asyncio.sleep(60)
    return "never"


@tool(context=True)
def writes(tool_context: ToolContext) -> None:
    """Write to the agent's state."""
    tool_context.agent.state.set("tried", 1)


@tool(context=True)
def asks(tool_context: ToolContext) -> None:
    """Ask."""
    tool_context.interrupt("really?")


@tool
def large() -> str:
    """Say a lot."""
    return "z" * 900_000


TORN = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b'{"half'))


@activity.defn(name="torn")
async def torn(_: dict) -> RawValue:
    """End with something that nobody can decode."""
    return TORN


@workflow.defn(name="LikeACycle", sandboxed=False)
class LikeACycle:
    """Runs activities one by one, as a cycle would, and then waits to be terminated."""

    @workflow.run
    async def run(self, steps: list[list]) -> None:
        for kind, arguments in steps:
            given = arguments or [TORN]
            await workflow.execute_activity(kind, args=given, start_to_close_timeout=timedelta(seconds=60))
        await workflow.wait_condition(lambda: False)


def model_call(cycle: int, call: int = 0, messages: list | None = None, **more) -> list:
    given = ModelCall(agent="tester", session_id="s", cycle=cycle, call=call, **more).model_dump()
    return [MODEL_ACTIVITY, [given, messages or [user_message("hi")]]]


def call_of(name: str, cycle: int, index: int, **more) -> list:
    return [name, [tool_call(name, cycle=cycle, index=index, **more).model_dump()]]


async def read(queue, model, steps, until) -> Recovery:
    """Run these activities, terminate their workflow, and read what it had finished."""
    deployments = served(quick, endless, writes, asks, large, model=model)
    worker = Worker(
        queue.client, task_queue=queue.name, workflows=[LikeACycle, PassesOn],
        activities=[*activities_for(deployments, queue.name, Segments()), torn],
        graceful_shutdown_timeout=timedelta(milliseconds=100),
    )  # fmt: skip
    async with worker:
        cycle = await queue.client.start_workflow("LikeACycle", steps, id=f"{queue.name}-cycle", task_queue=queue.name)
        async with asyncio.timeout(60):
            while not await until(cycle):
                await asyncio.sleep(0.02)
        await cycle.terminate()
        reading = await queue.start(READ_CYCLE_ACTIVITY, cycle.id, None, "by hand")
        return Recovery.model_validate(await asyncio.wait_for(reading.result(), 60))


def finished(count: int):
    async def enough(handle) -> bool:
        events = [event async for event in handle.fetch_history_events()]
        return sum(bool(e.activity_task_completed_event_attributes.scheduled_event_id) for e in events) >= count

    return enough


async def test_finished_calls_keep_their_results_and_a_running_one_is_unknown(queue):
    """By cycle and by the call's place in its message; both say how they were issued."""
    BEGAN.clear()

    async def begun(_) -> bool:
        return BEGAN.is_set()

    steps = [model_call(3), call_of("quick", 3, 0), call_of("endless", 3, 1)]
    recovery = await read(queue, ScriptedModel(["first"]), steps, begun)
    [cycle] = recovery.cycles
    assert (recovery.reason, cycle.cycle, cycle.response is not None) == ("by hand", 3, True)
    done, running = cycle.calls
    assert (done.index, done.status) == (0, "finished")
    assert done.outcome is not None
    assert done.outcome.result is not None
    assert done.outcome.result["content"] == [{"text": "done"}]
    assert (running.index, running.status) == (1, "unknown")
    assert [call.call.tool for call in cycle.calls if call.call] == ["quick", "endless"]


async def test_earlier_runs_of_a_call_are_told_with_what_they_wrote(queue):
    """Only those that ran to their end; their results are of no use any more."""
    BEGAN.clear()

    async def begun(_) -> bool:
        return BEGAN.is_set()

    runs = [call_of("writes", 1, 0), call_of("asks", 1, 0), call_of("quick", 1, 1), call_of("endless", 1, 0)]
    recovery = await read(queue, ScriptedModel([]), runs, begun)
    [cycle] = recovery.cycles
    assert [(call.index, call.status) for call in cycle.calls] == [(1, "finished"), (0, "unknown")]
    [ran] = cycle.earlier
    assert ran.outcome is not None
    assert (ran.index, ran.outcome.result, ran.outcome.state_set) == (0, None, {"tried": 1})


async def test_an_answer_that_a_hook_discarded_is_not_brought_back(queue):
    """The model was asked again in the same cycle and had not answered: the first answer does not count."""

    async def silent_the_second_time(scene):
        if scene.call:
            BEGAN.set()
            await asyncio.sleep(60)
        return "discarded"

    async def begun(_) -> bool:
        return BEGAN.is_set()

    BEGAN.clear()
    steps = [model_call(1, 0), model_call(1, 1)]
    recovery = await read(queue, ScriptedModel(silent_the_second_time), steps, begun)
    assert [cycle.response for cycle in recovery.cycles] == [None]


async def test_the_last_answer_of_a_cycle_counts(queue):
    """Asked again and answered: the second answer is the cycle's."""
    steps = [model_call(1, 0), model_call(1, 1)]
    recovery = await read(queue, ScriptedModel(["one", "two"]), steps, finished(2))
    assert recovery.cycles[0].response is not None
    assert recovery.cycles[0].response.message["content"] == [{"text": "two"}]


async def test_a_message_is_what_hooks_had_made_of_it(queue):
    """As its calls say; or as the model was shown it later, and nothing if that is what it had said."""
    left = assistant_text("moderated")
    later = [user_message("hi"), assistant_text("two"), user_message("more")]
    steps = [
        model_call(1),
        call_of("quick", 1, 0, message=left),
        model_call(2, 1),
        model_call(3, 2, later),
        model_call(4, 3, [user_message("hi"), left, user_message("more")]),
    ]
    recovery = await read(queue, ScriptedModel(["one", "two", "three", "four"]), steps, finished(5))
    assert [cycle.message for cycle in recovery.cycles] == [left, None, left, None]


async def test_a_prompt_is_what_hooks_had_made_of_it(queue):
    """All messages with which the invocation began, and none from before."""
    sent = [user_message("earlier"), user_message("context"), user_message("my pin is ****")]
    steps = [model_call(1, messages=sent, prompt=2), model_call(2)]
    recovery = await read(queue, ScriptedModel(["one", "two"]), steps, finished(2))
    assert [cycle.prompt for cycle in recovery.cycles] == [sent[1:], None]


async def test_what_somebody_completed_by_hand_is_unknown(queue):
    """A result that is no tool's outcome fails its cycle, not the recovery of it."""
    BEGAN.clear()
    completed = False

    async def ended(cycle) -> bool:
        nonlocal completed
        if BEGAN.is_set() and not completed:
            [running] = (await cycle.describe()).raw_description.pending_activities
            by_hand = queue.client.get_async_activity_handle(
                workflow_id=cycle.id, run_id=None, activity_id=running.activity_id
            )
            await by_hand.complete("done by hand")
            completed = True
        return completed

    recovery = await read(queue, ScriptedModel([]), [call_of("endless", 1, 0)], ended)
    [call] = recovery.cycles[0].calls
    assert (call.status, call.detail) == (
        "unknown",
        "the activity of 'endless' ended with something that is no outcome of a tool",
    )


async def test_results_too_large_to_be_read_together_say_that_their_calls_ran(queue):
    """The largest go first; that all of them have run is known."""
    steps = [call_of("large", 1, index) for index in range(3)] + [call_of("quick", 1, 3)]
    recovery = await read(queue, ScriptedModel([]), steps, finished(4))
    results = [call.outcome.result for call in recovery.cycles[0].calls if call.outcome]
    texts = [result["content"][0]["text"] for result in results if result is not None]
    assert [text[:12] for text in texts] == ["The tool ran", "The tool ran", "z" * 12, "done"]
    assert {call.status for call in recovery.cycles[0].calls} == {"finished"}


async def test_nobody_knows_what_a_workflow_that_is_gone_has_done(queue):
    """A history that was removed is a recovery that says so, not an error that repeats for ever."""
    async with queue.worker(served(quick)):
        reading = await queue.start(READ_CYCLE_ACTIVITY, "no-such-workflow", None, "lost")
        found = await asyncio.wait_for(reading.result(), 60)
        assert found == {"reason": "lost, and its history is gone", "lost": True, "cycles": []}


async def test_a_result_that_nobody_can_decode_is_unknown(queue):
    """The call ran; what came of it a person must say."""
    recovery = await read(queue, ScriptedModel([]), [call_of("torn", 1, 0)], finished(1))
    [cycle] = recovery.cycles
    assert [(call.index, call.status) for call in cycle.calls] == [(0, "unknown")]


async def test_a_history_that_nobody_can_decode_is_lost_at_once(queue):
    """Another attempt reads no more of it, so nobody waits for one."""

    async def scheduled(handle) -> bool:
        return "quick" in [
            event.activity_task_scheduled_event_attributes.activity_type.name
            async for event in handle.fetch_history_events()
        ]

    recovery = await read(queue, ScriptedModel([]), [["quick", []]], scheduled)
    assert (recovery.lost, recovery.cycles) == (True, [])
    assert "its history can't be read" in recovery.reason
