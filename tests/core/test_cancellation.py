"""`agent.cancel()` where Strands has nothing to compare: threads, signals, the turn after."""

import asyncio
import threading

import pytest
from tests.core.driving import acts, make, reply, results, valid

from countersign import tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent
from countersign.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor


def held(x=1):
    """An agent whose tool waits; and the events that say so and let it go on."""
    begun, go_on = threading.Event(), threading.Event()

    @tool
    def act(x: int) -> int:
        """Act."""
        begun.set()
        go_on.wait(30)
        return x

    return make([], acts(x), hooks=[], tools=[act]), begun, go_on


async def test_a_running_tool_ends_and_no_model_is_called_after_it():
    """From another thread; its result stays in the conversation."""
    agent, begun, go_on = held()
    running = asyncio.create_task(agent.invoke_async("go"))
    await asyncio.to_thread(begun.wait, 30)
    assert not agent.cancel_signal.is_set()
    await asyncio.to_thread(agent.cancel, message="stopped by hand")
    go_on.set()
    result = await running
    assert (result.stop_reason, results(agent)) == ("cancelled", [("success", "1")])
    assert agent.messages[-1]["content"] == [{"text": "stopped by hand"}]
    assert valid(agent) and not agent.cancel_signal.is_set()


def test_the_callers_own_signal_cancels_and_stays_set():
    """One event may stop several agents."""
    signal = threading.Event()
    signal.set()
    agent = make([], acts(1), hooks=[])
    assert agent("go", cancel_signal=signal).stop_reason == "cancelled"
    assert signal.is_set() and agent("go").stop_reason == "end_turn"


def test_answers_after_a_cancel_run_nothing_and_the_next_prompt_is_an_ordinary_one():
    """One result for each call, and no question outlives the turn."""
    log = []
    agent = make(log, lambda scene: acts(1, 2)[0] if len(scene.turn) == 1 else "done")
    first = agent("go")
    agent.cancel()
    assert agent(reply(first, "y", "y")).stop_reason == "cancelled"
    assert log == [] and valid(agent) and [status for status, _ in results(agent)] == ["error", "error"]
    second = agent("again")
    assert second.stop_reason == "interrupt"
    assert {item.id for item in first.interrupts}.isdisjoint(item.id for item in second.interrupts)


def test_a_prompt_after_a_cancel_begins_a_new_turn():
    """Nobody has to answer what was cancelled."""
    log = []
    agent = make(log, lambda scene: acts(1)[0] if len(scene.messages) == 1 else "done")
    agent("go")
    agent.cancel()
    assert agent("something else").stop_reason == "end_turn"
    assert log == [] and valid(agent)


@pytest.mark.parametrize(("executor", "ran"), [(ConcurrentToolExecutor, [1, 2, 3]), (SequentialToolExecutor, [1, 2])])
def test_a_cancel_before_a_call_does_not_keep_it_from_running(executor, ran):
    """The calls of a message go on together; one after the other, those behind it do not begin. The turn ends."""
    log = []

    def second(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 2:
            event.agent.cancel()

    agent = make(log, acts(1, 2, 3), hooks=[second], tool_executor=executor())
    assert agent("go").stop_reason == "cancelled" and sorted(log) == ran and valid(agent)


def test_a_cancel_before_a_message_s_tools_keeps_them_from_running():
    """Each gets an error result."""
    log = []

    def before(event: BeforeToolsEvent):
        event.agent.cancel()

    agent = make(log, acts(1, 2), hooks=[before])
    assert agent("go").stop_reason == "cancelled" and log == []
    assert [status for status, _ in results(agent)] == ["error", "error"]
