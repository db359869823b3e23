"""Attempts to break the session machine: crashes in a row, stops between turns, answers nobody gave."""

import asyncio

import pytest
from tests.core.driving import StillEffects, make
from tests.core.test_session import Driven, driven

from countersign import ToolContext, tool
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.hitl import TRUSTED_TOOLS_KEY
from countersign.agent_core.wire import ModelResponse, RecoveredCall, RecoveredCycle, Recovery, ToolOutcome
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls


def called(use_id, x):
    return {"toolUse": {"toolUseId": use_id, "name": "act", "input": {"x": x}}}


def said(*blocks):
    return ModelResponse(stop_reason="tool_use", message={"role": "assistant", "content": list(blocks)})


def finished(index, use_id, text, **more):
    result = {"toolUseId": use_id, "status": "success", "content": [{"text": text}]}
    return RecoveredCall(index=index, status="finished", outcome=ToolOutcome(kind="result", result=result, **more))


def crash(it, *recovered):
    """The next cycle fails as a workflow and its history says this."""
    given = it.session.next_cycle(it.now)
    it.session.recover(Recovery(reason="lost", cycles=list(recovered)), given, it.now)
    return it


def test_a_second_unknown_outcome_is_asked_about_again():
    """ "retry" covers one repetition: if that is lost too, a person is asked again and nothing runs silently."""
    log = []
    it = driven(1, log=log, hooks=()).prompt()
    unknown = RecoveredCall(index=0, status="unknown", detail="lost")
    crash(it, RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[unknown])).step()
    assert [q.name for q in it.session.open_questions()] == ["unknown-outcome"]
    it.answer("retry")
    crash(it, RecoveredCycle(cycle=3, calls=[unknown])).step()
    assert log == []
    [again] = it.session.open_questions()
    assert (again.name, again.generation) == ("unknown-outcome", 1)
    it.answer("retry").step()
    assert log == [1]


class LosesTheFirst(StillEffects):
    """Effects whose first tool call runs, and is then lost before anybody knows."""

    lost = False

    async def call_tools(self, calls, done):
        async def told(position, outcome):
            first, self.lost = not self.lost, True
            await done(position, ToolOutcome(kind="unknown", detail="worker lost") if first else outcome)

        await super().call_tools(calls, told)


def test_a_retry_has_the_key_of_the_call_that_was_lost():
    """The service behind the tool can tell that it is the same call; the next call has another key."""
    keys = []

    @tool(context=True)
    def act(tool_context: ToolContext, x: int) -> int:
        """Act."""
        keys.append(tool_context.idempotency_key)
        return x

    it = Driven(make([], [calls(("act", {"x": 1})), calls(("act", {"x": 1})), "done"], tools=[act], hooks=()))
    effects = LosesTheFirst(it.agent, it.clock)

    def step():
        while (given := it.session.next_cycle(it.now)) is not None:
            end = asyncio.run(run_cycle(it.agent, given, it.session.conversation(), effects))
            it.session.finish_cycle(end.outcome, it.now)

    it.prompt()
    step()
    it.answer("retry")
    step()
    assert keys[0] == keys[1] != keys[2]
    assert (len(keys), it.result_texts()) == (3, ["1", "1"])


def test_a_later_cycle_of_a_failed_workflow_is_not_forgotten():
    """A call that a hook refused leaves no activity; what later cycles of that workflow ran is kept all the same."""
    log = []

    def refuse_first(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 0:
            event.cancel_tool = "never 0"

    script = [calls(("act", {"x": 0}), ("act", {"x": 1})), calls(("act", {"x": 2})), "done"]
    it = Driven(make(log, script, hooks=[refuse_first])).prompt()
    refused = {"toolUseId": "a", "status": "error", "content": [{"text": "never 0"}]}
    ran = {"toolUseId": "b", "status": "success", "content": [{"text": "1"}]}
    settled = {"role": "user", "content": [{"toolResult": refused}, {"toolResult": ran}]}
    first = RecoveredCycle(cycle=1, response=said(called("a", 0), called("b", 1)), calls=[finished(1, "b", "1")])
    second = RecoveredCycle(
        cycle=2, opened_with=[settled], response=said(called("c", 2)), calls=[finished(0, "c", "2")]
    )
    crash(it, first, second).step()
    assert log == [], "everything had run already"
    assert it.result_texts() == ["never 0", "1", "2"]
    assert it.valid() and it.session.result().stop_reason == "end_turn"


def test_what_a_finished_tool_wrote_to_the_state_survives_a_failed_cycle():
    """A kept result keeps its writes to `agent.state` too."""
    it = driven(1, hooks=()).prompt()
    done = finished(0, "u", "1", state_set={"seen": 1, TRUSTED_TOOLS_KEY: ["act"]})
    crash(it, RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[done])).step()
    assert it.session.state.agent_state == {"seen": 1}, "trust is not a tool's to write"


def test_a_stop_before_the_only_turn_ends_the_session():
    """A session of one turn whose prompt is stopped away is done, and does not wait for nothing."""
    it = driven(1, lifetime="turn").prompt()
    it.session.stop(it.now)
    assert it.session.done
    assert it.session.result().stop_reason == "cancelled"


@pytest.mark.parametrize("lifetime", ["turn", "open"])
def test_a_stop_beats_a_hook_that_goes_on(lifetime):
    """`AfterInvocationEvent.resume` does not outlive a stop that came during its cycle."""
    from countersign.hooks import AfterInvocationEvent

    def more(event: AfterInvocationEvent):
        event.resume = "more"

    it = Driven(make([], lambda scene: "said", hooks=[more]), lifetime=lifetime).prompt()
    given = it.session.next_cycle(it.now)
    it.session.stop(it.now)
    it.run_one(given)
    assert it.session.next_cycle(it.now) is None
    assert it.session.result().stop_reason in ("end_turn", "cancelled")


def going_on(lifetime="turn"):
    """A driven session whose hook goes on for ever."""
    from countersign.hooks import AfterInvocationEvent

    def more(event: AfterInvocationEvent):
        event.resume = "more"

    return Driven(make([], lambda scene: "said", hooks=[more]), lifetime=lifetime)


def test_a_turn_in_which_a_hook_goes_on_counts_as_one():
    """What it uses adds up, and the turn's limits hold for all of it, so that even an endless one ends."""
    it = going_on()
    it.session.state.options.limits.turns = 3
    it.prompt().step()
    result = it.session.result()
    assert (result.stop_reason, result.cycles, result.turn) == ("limit_turns", 3, 1)
    assert it.session.done


@pytest.mark.parametrize("lifetime", ["turn", "open"])
def test_a_lost_cycle_is_run_again_in_its_turn(lifetime):
    """Before anything has happened a prompt runs again; a stop in between ends the turn."""
    it = crash(driven(1, lifetime=lifetime).prompt())
    assert (it.session.state.turn, it.session.busy) == (1, True)
    it.session.stop(it.now)
    assert not it.session.busy
    assert it.session.done == (lifetime == "turn")
    it = crash(driven(1, lifetime=lifetime).prompt())
    it.step()
    assert it.session.state.turn == 1
    assert it.session.open_questions()


def test_an_interrupt_without_a_question_never_waits():
    """Should a cycle ever end with an interrupt that nobody can answer, the turn fails instead of waiting for ever."""
    it = driven(1).prompt()
    given = it.session.next_cycle(it.now)
    original = it.session.finish_cycle

    def without_questions(outcome, now):
        outcome.pending.questions.clear()
        original(outcome, now)

    it.session.finish_cycle = without_questions
    it.run_one(given)
    assert it.session.result().stop_reason == "failed"
    assert it.valid()
