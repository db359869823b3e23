"""The tool activity: what it promises beyond the crashes of tests/durable/test_tool_crashes.py."""

import asyncio
import functools
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Annotated

import pytest
from pydantic import AfterValidator
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from tests.activities.calls import served, tool_call

from countersign import ToolContext, tool
from countersign.agent_core.wire import ToolOutcome

LOST = threading.Event()
"""Set once an attempt of `stays` has begun."""

TOLD = threading.Event()
"""Set once an attempt of `stays` was cancelled."""

began: list[str] = []


@tool(context=True)
def beats(tool_context: ToolContext) -> str:
    """Heartbeat from a thread."""
    for _ in range(3):
        tool_context.heartbeat()
        time.sleep(0.02)
    return "beat"


@tool
async def stays(seconds: float) -> str:
    """Outlive the worker."""
    began.append("stays")
    LOST.set()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        TOLD.set()
        raise
    return "stayed"


@tool(context=True)
async def streams(tool_context: ToolContext) -> AsyncIterator[str]:
    """Stream, with heartbeats."""
    for part in ("a", "b"):
        yield part
        tool_context.heartbeat()
        await asyncio.sleep(0.02)
    yield "streamed"


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@tool
@logged
async def wrapped() -> str:
    """Need the worker's event loop."""
    await asyncio.sleep(0)
    return "awaited"


@tool(idempotent=True)
async def falls() -> str:
    """Always outlive the worker."""
    began.append("falls")
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


@tool
def leaves() -> str:
    """End the process, as a wrapped command line tool does."""
    sys.exit(3)


@tool
async def leaves_async() -> str:
    """End the process from a coroutine."""
    sys.exit(3)


@tool(context=True)
async def asks_in_a_group(tool_context: ToolContext) -> str:
    """Ask from inside a task group, which wraps the interrupt."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_ask(tool_context))
    return "unreachable"


async def _ask(context: ToolContext) -> None:
    context.interrupt("grouped", reason="why")


@tool
def complains(kind: str) -> str:
    """Raise."""
    raise {"value": ValueError("bad value"), "key": KeyError("gone")}[kind]


async def outcome_of(queue, deployments, call) -> ToolOutcome:
    async with queue.worker(deployments):
        handle = await queue.start(call.tool, call)
        return ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))


def text_of(outcome: ToolOutcome) -> str:
    assert outcome.result is not None
    return outcome.result["content"][0]["text"]


async def test_a_sync_tool_heartbeats_from_its_thread(queue):
    """`tool_context.heartbeat()` works in sync tools too, which run in threads."""
    outcome = await outcome_of(queue, served(beats), tool_call("beats"))
    assert (outcome.kind, text_of(outcome)) == ("result", "beat")


@pytest.mark.parametrize(("body", "text"), [(streams, "streamed"), (wrapped, "awaited")])
async def test_a_body_of_any_form_runs_to_its_end(queue, body, text):
    """A streaming tool, which may heartbeat, and a coroutine under a plain decorator."""
    outcome = await outcome_of(queue, served(body), tool_call(body.tool_name))
    assert (outcome.kind, text_of(outcome)) == ("result", text)


@pytest.mark.parametrize("leaver", [leaves, leaves_async])
async def test_a_tool_that_exits_does_not_take_the_worker_along(queue, leaver):
    """`sys.exit` in a tool is that tool's error, and the worker serves on."""
    deployments = served(leaver, beats)
    async with queue.worker(deployments):
        handle = await queue.start(leaver.tool_name, tool_call(leaver.tool_name))
        outcome = ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))
        assert outcome.kind == "result"
        assert "SystemExit" in text_of(outcome)
        after = await queue.start("beats", tool_call("beats"))
        assert (await asyncio.wait_for(after.result(), 60))["kind"] == "result"


@pytest.mark.parametrize(("kind", "text"), [("value", "Error: bad value"), ("key", "Error: KeyError - 'gone'")])
async def test_a_tools_error_reads_as_in_strands(queue, kind, text):
    """A ValueError is shown by its words alone, everything else with its type."""
    outcome = await outcome_of(queue, served(complains), tool_call("complains", {"kind": kind}))
    assert (text_of(outcome), outcome.result and outcome.result["status"]) == (text, "error")


async def test_an_interrupt_inside_a_task_group_is_an_interrupt(queue):
    """The record counts, also when the exception arrives in a BaseExceptionGroup."""
    outcome = await outcome_of(queue, served(asks_in_a_group), tool_call("asks_in_a_group"))
    assert outcome.kind == "interrupt"
    assert outcome.ask is not None
    assert outcome.ask.name == "grouped"


async def test_a_worker_does_not_run_a_tool_of_another_queue(queue):
    """Also if a call of it arrives, for instance one from before the tool was given its queue: never started."""
    began.clear()

    @tool(queue="vault")
    def opens() -> str:
        """Open the vault."""
        began.append("opens")
        return "open"

    outcome = await outcome_of(queue, served(opens), tool_call("opens"))
    assert (outcome.kind, began) == ("never_started", [])
    assert "task queue 'vault'" in outcome.detail


async def lose_a_running_call(queue, deployments, call):
    """Start a call and end its worker while the tool runs."""
    LOST.clear()
    async with queue.worker(deployments):
        handle = await queue.start(call.tool, call, heartbeat_s=1.0)
        assert await asyncio.to_thread(LOST.wait, 60)
    return handle


async def test_a_lost_call_stays_unknown_on_a_worker_that_lacks_the_tool(queue):
    """A begun call is not "never started" because the next worker does not know the tool any more."""
    handle = await lose_a_running_call(queue, served(stays), tool_call("stays", {"seconds": 30}))
    async with queue.worker(served(beats)):
        outcome = ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))
    assert outcome.kind == "unknown"


async def test_a_lost_call_stays_unknown_on_a_worker_that_has_the_tool_for_another_agent(queue):
    """The same where the activity type is known and only the agent lacks the tool."""
    handle = await lose_a_running_call(queue, served(stays), tool_call("stays", {"seconds": 30}))
    others = {"other": served(stays)["tester"]}
    async with queue.worker(others):
        outcome = ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))
    assert outcome.kind == "unknown"


async def test_a_worker_of_other_code_does_not_use_up_what_was_signed(queue):
    """Another worker may have the right code; if none has, a person is asked, and told that nobody has run the call."""

    @tool
    def pay(cents: int, currency: str = "EUR") -> str:
        """Pay, as it became after the call was signed."""
        return currency

    signed = tool_call("pay", {"cents": 5})
    outcome = await outcome_of(queue, served(pay), signed)
    assert (outcome.kind, outcome.not_run) == ("unknown", True)
    assert "other code" in outcome.detail and "EUR" in outcome.detail

    @tool(name="pay")
    def pay_strictly(cents: Annotated[int, AfterValidator(lambda cents: {}[cents])]) -> str:
        """Pay, with a validator that raises an error of its own."""
        return "never"

    @tool(name="pay")
    def pay_or_not(cents: bool) -> str:
        """Pay, where one and true are two things."""
        return "never"

    for other, given in ((pay_strictly, signed), (pay_or_not, tool_call("pay", {"cents": 1}))):
        outcome = await outcome_of(queue, served(other), given)
        assert (outcome.kind, outcome.not_run) == ("unknown", True)

    @tool(name="pay")
    def pay_as_signed(cents: int) -> str:
        """Pay, as it was."""
        return "paid"

    async with queue.worker(served(pay)):
        handle = await queue.start("pay", signed)
        async with asyncio.timeout(60):
            while not any(p.attempt >= 3 for p in (await handle.describe()).raw_description.pending_activities):
                await asyncio.sleep(0.02)
    async with queue.worker(served(pay_as_signed)):
        assert text_of(ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))) == "paid"


async def test_a_tool_that_no_worker_has_never_started(queue):
    """An unknown tool on its first attempt surely did not run."""
    outcome = await outcome_of(queue, served(beats), tool_call("gone"))
    assert (outcome.kind, "gone" in outcome.detail) == ("never_started", True)


async def test_a_call_sent_under_another_tools_name_never_starts(queue):
    """The activity type that the Temporal UI shows is the tool that runs."""
    began.clear()
    async with queue.worker(served(stays, beats)):
        handle = await queue.start("beats", tool_call("stays", {"seconds": 0}))
        outcome = ToolOutcome.model_validate(await asyncio.wait_for(handle.result(), 60))
    assert (outcome.kind, began) == ("never_started", [])


async def test_an_idempotent_tool_that_keeps_losing_its_worker_asks_a_person_in_the_end(queue):
    """A call that brings its worker down each time is not repeated for ever."""
    began.clear()
    outcome = await outcome_of(queue, served(falls), tool_call("falls"))
    assert outcome.kind == "unknown"
    assert 2 <= len(began) <= 10


async def test_a_cancel_reaches_an_async_tool(queue):
    """A cancelled call ends as cancelled, its tool is told, and it is not run again."""
    LOST.clear()
    TOLD.clear()
    began.clear()
    async with queue.worker(served(stays)):
        handle = await queue.start("stays", tool_call("stays", {"seconds": 30}))
        assert await asyncio.to_thread(LOST.wait, 60)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 60)
        assert isinstance(failed.value.cause, CancelledError)
        assert await asyncio.to_thread(TOLD.wait, 60)
    assert began == ["stays"]


async def test_the_mark_is_on_the_server_before_the_tool_begins(queue, client):
    """The server itself shows the mark at the moment when the tool's body begins."""
    seen: list[object] = []

    @tool
    async def looks() -> str:
        """Ask the server for this call's last heartbeat."""
        [pending] = (await running[0].describe()).raw_description.pending_activities
        seen.extend(await client.data_converter.decode(pending.heartbeat_details.payloads))
        return "looked"

    running: list[WorkflowHandle] = []
    async with queue.worker(served(looks)):
        running.append(await queue.start("looks", tool_call("looks")))
        await asyncio.wait_for(running[0].result(), 20)
    assert seen == ["invoking"]


async def test_a_tool_is_an_activity_of_its_own_name(queue):
    """The Temporal UI shows the tool's name."""
    async with queue.worker(served(beats)):
        handle = await queue.start("beats", tool_call("beats"))
        await handle.result()
    scheduled = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in (await handle.fetch_history()).events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert scheduled == ["beats"]
