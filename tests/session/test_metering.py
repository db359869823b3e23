"""What happens to a session is counted once, by its name; only words that people agreed on count as yes or no."""

from collections import Counter
from typing import Any

import pytest
from temporalio import workflow
from tests.core.test_break_sessions import called, crash, said
from tests.core.test_session import driven

from countersign.agent_core.wire import Answer, Question, RecoveredCall, RecoveredCycle, ToolOutcome
from countersign.workflows.metering import Metering, decision_of

OWN_WORDS = {"approve": "ship it", "deny": "wait"}


@pytest.mark.parametrize(
    ("response", "answers", "decision"),
    [
        ("y", None, "approved"),
        (True, None, "approved"),
        ("ship it", OWN_WORDS, "approved"),
        ("n", None, "denied"),
        (False, None, "denied"),
        ("no: too expensive", None, "denied"),
        ("wait", OWN_WORDS, "denied"),
        ("retry", {"retry": "retry", "skip": "skip"}, "other"),
        (None, None, "other"),
        ({"decision": "reject"}, None, "denied"),
    ],
)
def test_an_answer_is_counted_by_its_words(response, answers, decision):
    """What only the asker understands is "other", never a yes."""
    question = Question(id="q", name="n", digest="d", answer=Answer(response=response))
    if answers is not None:
        question.answers = answers
    assert decision_of(question) == decision


class Remembering:
    """A meter whose counters remember their sums, by name without what all names share."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()

    def create_counter(self, name: str, description: str) -> Any:
        """A counter of that name."""

        class Counting:
            def add(_, value: int, labels: dict[str, str]) -> None:
                self.sums[name.removeprefix("countersign_").removesuffix("_total")] += value

        return Counting()


@pytest.fixture
def counted(monkeypatch) -> Counter[str]:
    """What a session's metering has counted so far."""
    meter = Remembering()
    monkeypatch.setattr(workflow, "metric_meter", lambda: meter)
    return meter.sums


def test_a_question_that_a_stop_withdraws_is_counted(counted):
    """It waits no longer, and nobody has answered it."""
    it = driven(1, 2)
    metering = Metering(it.session)
    it.prompt().step()
    metering.measure()
    it.session.stop(it.now)
    metering.measure()
    assert (counted["questions_asked"], counted["questions_withdrawn"], counted["answers"]) == (2, 2, 0)


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (ToolOutcome(kind="unknown", detail="no worker took it", not_run=True), "calls_not_taken"),
        (ToolOutcome(kind="unknown", detail="no heartbeat"), "unknown_outcomes"),
    ],
)
def test_a_call_that_nobody_took_is_none_that_may_have_run(counted, monkeypatch, outcome, name):
    """A queue without workers and a worker that died have an alert each."""

    async def call_tools(self, calls, done):
        for place, _ in enumerate(calls):
            await done(place, outcome)

    monkeypatch.setattr("tests.core.driving.StillEffects.call_tools", call_tools)
    it = driven(1, hooks=())
    metering = Metering(it.session)
    it.prompt().step()
    metering.measure()
    assert {one: counted[one] for one in ("calls_not_taken", "unknown_outcomes") if counted[one]} == {name: 1}


def test_a_cycle_that_fails_is_counted_with_the_calls_that_it_leaves_in_doubt(counted):
    """Once each; a run that takes the session over counts nothing of what was before it."""
    it = driven(1, 2, 3, hooks=()).prompt()
    metering = Metering(it.session)
    lost = [RecoveredCall(index=index, status="unknown", detail="lost") for index in (0, 2)]
    message = said(called("a", 1), called("b", 2), called("c", 3))
    crash(it, RecoveredCycle(cycle=1, response=message, calls=lost))
    metering.measure()
    metering.measure()
    Metering(it.session).measure()
    assert (counted["cycles_failed"], counted["unknown_outcomes"]) == (1, 2)
