"""A call in doubt either may have run or surely has not; that is a field, and no words can pass for it."""

import asyncio

import pytest
from tests.core.driving import StillEffects
from tests.core.test_session import Driven, driven

from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.session.views import cards
from countersign.agent_core.unknown_outcomes import ANSWER_WORDS, known_of_call, tools_of
from countersign.agent_core.wire import ToolOutcome

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


def lost(outcome: ToolOutcome) -> Driven:
    """A session whose call ended like this; it waits for a person."""
    it = driven(1, hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    end = asyncio.run(run_cycle(it.agent, given, it.session.conversation(), Lost(it, outcome)))
    it.session.finish_cycle(end.outcome, it.now)
    return it


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
