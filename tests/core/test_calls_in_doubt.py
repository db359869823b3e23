"""A call in doubt either may have run or surely has not; that is a field, and no words can pass for it."""

import asyncio

import pytest
from pydantic import BaseModel
from tests.core.driving import StillEffects, acts, asking, make
from tests.core.test_break_sessions import called, crash, finished, said
from tests.core.test_session import Driven, driven

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.session.views import cards
from countersign.agent_core.unknown_outcomes import ANSWER_WORDS, known_of_call, tools_of
from countersign.agent_core.wire import RecoveredCall, RecoveredCycle, ToolCall, ToolOutcome
from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop

MAYBE = "This call may have run; its outcome is unknown: "
NOT_RUN = ToolOutcome(kind="unknown", detail="no worker took it", not_run=True)
SOUNDS_ALIKE = ToolOutcome(kind="unknown", detail="it has not run: says a tool's worker")


class Lost(StillEffects):
    """Effects whose tool calls end like this."""

    def __init__(self, it: Driven, outcome: ToolOutcome) -> None:
        super().__init__(it.agent, it.clock)
        self.outcome = outcome

    async def call_tools(self, calls, done):
        """See `Effects`."""
        for position, _ in enumerate(calls):
            await done(position, self.outcome)


def lose(it: Driven, outcome: ToolOutcome = SOUNDS_ALIKE) -> Driven:
    """Run the next cycle; its calls end like this."""
    given = it.session.next_cycle(it.now)
    end = asyncio.run(run_cycle(it.agent, given, it.session.conversation(), Lost(it, outcome)))
    it.session.finish_cycle(end.outcome, it.now)
    return it


def lost(outcome: ToolOutcome, **more) -> Driven:
    """A session whose call ended like this; it waits for a person."""
    return lose(driven(1, **{"hooks": (), **more}).prompt(), outcome)


@pytest.mark.parametrize(
    ("outcome", "note", "skipped"),
    [
        (NOT_RUN, "Nobody has run the call.", "This call has not run; a person decided not to run it."),
        (SOUNDS_ALIKE, "The call may have run. Nobody knows.", "This call may or may not have run; a person decided"),
    ],
)
def test_a_person_hears_whether_a_call_may_have_run(outcome, note, skipped):
    """So does the model, if the person skips it; a detail that sounds like the other kind changes nothing."""
    it = lost(outcome)
    [question] = it.session.open_questions()
    assert (question.reason["note"], question.reason["detail"]) == (note, outcome.detail)
    it.answer("skip").step()
    assert it.result_texts()[0].startswith(skipped)


@pytest.mark.parametrize(("outcome", "known"), [(NOT_RUN, "has not run"), (SOUNDS_ALIKE, "may have run")])
def test_a_question_and_its_memo_card_tell_it_too(outcome, known):
    """Lists and cards say of the call what the session knows, and every answer that is offered has its words."""
    it = lost(outcome)
    [question] = it.session.open_questions()
    [card] = cards(it.session)
    assert known_of_call(question.model_dump(mode="json")) == known_of_call(card) == known
    assert tools_of(card) == [question.calls[0].tool]
    assert ANSWER_WORDS[known].keys() == question.answers.keys()


@pytest.mark.parametrize(
    ("outcome", "told"),
    [(NOT_RUN, "This call has not run: no worker took it"), (SOUNDS_ALIKE, f"{MAYBE}{SOUNDS_ALIKE.detail}")],
)
@pytest.mark.parametrize("resumed", [False, True])
def test_a_stop_says_the_same(outcome, told, resumed):
    """Whether the session waits, or its next cycle has begun."""
    it = lost(outcome)
    if resumed:
        it.answer("retry")
        it.run_one(it.session.next_cycle(it.now), stop_requested=True)
    else:
        it.session.stop(it.now)
    assert it.result_texts() == [told]


def test_a_reset_takes_the_certainty_away():
    """What nobody had run when the session stood there may have been retried since."""
    it = lost(NOT_RUN)
    it.session.state.after_reset = True
    it.answer("retry").step()
    [question] = it.session.open_questions()
    assert question.reason["note"] == "The call may have run. Nobody knows."


def test_the_audit_trail_says_it():
    """Counts of lost calls and of calls that nobody took are read off it."""
    [entry] = [entry for entry in lost(NOT_RUN).session.state.audit if entry.event == "tool_ended"]
    assert entry.detail["not_run"] is True
    [entry] = [entry for entry in lost(SOUNDS_ALIKE).session.state.audit if entry.event == "tool_ended"]
    assert "not_run" not in entry.detail


def asked(it):
    """The one question that is open: its name, and the input of its call."""
    [question] = it.session.open_questions()
    return question.name, question.calls[0].input


def rewriting(event: BeforeToolCallEvent):
    """Lets another call run than the model wrote."""
    event.tool_use["input"]["x"] = event.invocation_state["runs"]


def test_an_approvers_edit_is_what_may_have_run():
    """The question shows the call as it was issued, and "retry" runs that."""
    log = []
    it = Driven(make(log, acts(1), hooks=[], interventions=[HumanInTheLoop()])).prompt().step()
    lose(it.answer({"decision": "edit", "input": {"x": 7}}))
    assert asked(it) == ("unknown-outcome", {"x": 7})
    it.answer("retry").step()
    assert log == [7]


def test_what_a_failed_cycle_had_issued_is_what_may_have_run():
    """The same where the cycle's history says it."""
    issued = ToolCall(agent="a", session_id="s", cycle=1, index=0, tool="act", tool_use_id="u", input={"x": 7},
                      digest="", idempotency_key="")  # fmt: skip
    unknown = RecoveredCall(index=0, status="unknown", call=issued)
    it = driven(1, hooks=()).prompt()
    crash(it, RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[unknown])).step()
    assert asked(it) == ("unknown-outcome", {"x": 7})


@pytest.mark.parametrize(("answer", "log", "told"), [("y", [8], "8"), ("n", [], "Not run: a person refused it")])
def test_a_retry_covers_the_call_that_was_shown(answer, log, told):
    """If hooks make another one of it meanwhile, that is asked about, and runs or does not."""
    ran = []
    it = driven(1, log=ran, hooks=[rewriting], invocation_state={"runs": 7}).prompt()
    lose(it)
    assert asked(it) == ("unknown-outcome", {"x": 7})
    it.session.state.invocation_state = {"runs": 8}
    it.answer("retry").step()
    assert asked(it) == ("input-changed", {"x": 8})
    it.answer(answer).step()
    assert (ran, it.valid()) == (log, True)
    assert it.result_texts()[0].startswith(told)


def test_the_model_hears_of_a_call_in_doubt_that_is_not_repeated():
    """A person wanted it to run again and a hook does not: it may have run all the same."""

    def closed(event: BeforeToolCallEvent):
        if event.invocation_state.get("closed"):
            event.cancel_tool = "the shop is closed"

    it = lost(SOUNDS_ALIKE, hooks=[closed])
    it.session.state.invocation_state = {"closed": True}
    it.answer("retry").step()
    [block] = it.session.conversation()[2]["content"]
    assert block["toolResult"]["content"] == [{"text": "the shop is closed"}, {"text": f"{MAYBE}{SOUNDS_ALIKE.detail}"}]


def test_a_retry_lapses():
    """As every approval does whose call has not started in time."""
    log = []
    it = lost(SOUNDS_ALIKE, log=log)
    it.answer("retry").clock.forward(days=2)
    it.step()
    assert (asked(it)[0], log) == ("unknown-outcome", [])
    it.answer("retry").step()
    assert log == [1]


def test_a_retry_is_no_answer_after_a_reset():
    """The repetition may have begun before the session was reset."""
    log = []
    it = lost(SOUNDS_ALIKE, log=log)
    it.session.state.after_reset = True
    it.answer("retry").step()
    assert (asked(it), log) == (("unknown-outcome", {"x": 1}), [])


class Answered(BaseModel):
    """What is asked for."""

    x: int


def test_after_a_reset_idempotent_calls_are_asked_about_too():
    """Their idempotency keys are others now. What only holds the turn's object is not: it has no effect."""
    ran = []

    @tool(idempotent=True)
    def pay(x: int) -> int:
        """Pay."""
        ran.append(x)
        return x

    script = [calls(("pay", {"x": 1}), ("Answered", {"x": 2})), "done"]
    it = Driven(Agent(ScriptedModel(script), tools=[pay], structured_output_model=Answered)).prompt()
    it.session.state.after_reset = True
    it.step()
    assert (asked(it), ran) == (("unknown-outcome", {"x": 1}), [])
    it.answer("retry").step()
    assert (ran, it.session.result().structured_output) == ([1], {"x": 2})


def test_a_call_whose_result_came_is_in_doubt_no_more():
    """The cycle fails after the repetition, and a hook wants another one: policy asks about that, as of any retry."""
    log = []

    def again(event: AfterToolCallEvent):
        event.retry = event.result["content"][0]["text"] == "bad"

    it = Driven(make(log, lambda scene: "done", hooks=[asking, again])).prompt()
    crash(it, RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[RecoveredCall(index=0, status="unknown")]))
    it.step().answer("retry").step().answer("y")
    crash(it, RecoveredCycle(cycle=it.session.state.cycle + 1, calls=[finished(0, "u", "bad")])).step()
    assert (asked(it)[0], log) == ("ok?", [])


@pytest.mark.parametrize("kind", ["never_started", "lapsed"])
def test_a_repetition_that_does_not_begin_takes_no_doubt_away(kind):
    """The call may still have run the first time."""
    it = lost(SOUNDS_ALIKE)
    lose(it.answer("retry"), ToolOutcome(kind=kind, detail="no worker in time")).step()
    [block] = it.session.conversation()[2]["content"]
    texts = [part["text"] for part in block["toolResult"]["content"]]
    assert texts == ["Not run: no worker in time", f"{MAYBE}{SOUNDS_ALIKE.detail}"]
