"""What a failed cycle's tools returned: hooks and handlers hear of it before the model does."""

import pytest
from tests.core.driving import block, make
from tests.core.test_break_sessions import called, crash, finished, said
from tests.core.test_session import Driven, driven

from countersign.agent_core.calls_in_doubt import attempted
from countersign.agent_core.wire import RecoveredCall, RecoveredCycle
from countersign.errors import AnswerRefused
from countersign.hooks import AfterToolCallEvent, BeforeInvocationEvent, BeforeToolCallEvent, BeforeToolsEvent
from countersign.interventions import InterventionHandler, Proceed
from countersign.models import calls

BOTH = said(called("u", 1), called("v", 2))
UNKNOWN = RecoveredCall(index=0, status="unknown", detail="lost")


def redact(event: AfterToolCallEvent):
    event.result["content"] = [{"text": event.result["content"][0]["text"].replace("SECRET", "***")}]


class FailsAfterwards(InterventionHandler):
    """Withholds each result, by failing."""

    name = "fails"
    on_error = "deny"

    def before_tool_call(self, event, **kwargs):
        return Proceed()

    def after_tool_call(self, event, **kwargs):
        raise ValueError("broken")


def recovering(*outcomes, log=None, **more):
    """A session whose first cycle asked for two calls, failed, and left these."""
    agent = make([] if log is None else log, lambda scene: "done", **more)
    return crash(Driven(agent).prompt(), RecoveredCycle(cycle=1, response=BOTH, calls=list(outcomes)))


def test_hooks_see_recovered_results_once():
    """A redaction holds, no tool runs again, and the next model call sees what the hook made of it."""
    log = []
    it = recovering(finished(0, "u", "a SECRET"), finished(1, "v", "b"), log=log, hooks=[redact]).step()
    assert (it.result_texts(), log) == (["a ***", "b"], [])
    assert it.session.result().stop_reason == "end_turn"
    assert it.valid()


def test_a_handler_that_fails_closed_withholds_a_recovered_result():
    """`on_error="deny"` counts for them too."""
    it = recovering(finished(0, "u", "SECRET"), finished(1, "v", "SECRET"), interventions=[FailsAfterwards()]).step()
    assert "SECRET" not in str(it.session.conversation())
    assert it.valid()


def test_what_a_hook_wants_to_run_again_is_decided_anew():
    """A retry of a recovered call goes through the hooks before it, as any other."""
    log, heard = [], []

    def again(event: AfterToolCallEvent):
        event.retry = event.result["content"][0]["text"] == "bad"

    def hear(event: BeforeToolCallEvent):
        heard.append(event.tool_use["input"]["x"])

    it = recovering(finished(0, "u", "bad"), finished(1, "v", "good"), log=log, hooks=[again, hear]).step()
    assert (log, heard) == ([1], [1])
    assert it.result_texts()[1] == "good"


@pytest.mark.parametrize("last", [finished(0, "u", "a"), UNKNOWN, RecoveredCall(index=0, status="never_started")])
def test_earlier_runs_of_a_call_count(last):
    """Its next key is another one than theirs, and what they wrote to the agent's state is kept."""
    earlier = [finished(0, "u", "bad", state_set={"tried": tries}) for tries in (1, 2)]
    cycle = RecoveredCycle(cycle=1, response=BOTH, calls=[last], earlier=earlier)
    it = crash(Driven(make([], [])).prompt(), cycle)
    assert it.session.state.pending.executions == {0: 2}
    assert it.session.state.agent_state == {"tried": 2}


def test_writes_of_recovered_runs_merge_as_they_did():
    """What runs again does so when all others have run: its first run's value stands behind theirs."""
    first = [finished(0, "u", "a", state_set={"key": "of 0"}), finished(1, "v", "bad", state_set={"key": "of 1"})]
    cycle = RecoveredCycle(cycle=1, response=BOTH)
    attempted(cycle, first)
    attempted(cycle, [finished(1, "v", "good", state_set={"more": True})])
    it = crash(Driven(make([], [])).prompt(), cycle)
    assert it.session.state.agent_state == {"key": "of 1", "more": True}


def test_an_earlier_run_keeps_only_writes_that_stand():
    """However often a tool with a large state runs again, what is read back stays small."""
    cycle = RecoveredCycle(cycle=1, response=BOTH)
    for tries in range(3):
        attempted(cycle, [finished(0, "u", "bad", state_set={"all": tries, f"only-{tries}": 1})])
    assert [run.outcome.state_set for run in cycle.earlier] == [{"only-0": 1}, {"only-1": 1}]


def test_a_batch_question_does_not_show_what_has_run():
    """Asked anew after a failed cycle, it is about the calls that are left."""

    def ask(event: BeforeToolsEvent):
        if event.interrupt("all?") != "y":
            event.cancel = True

    it = recovering(finished(0, "u", "a"), hooks=[ask]).step()
    [question] = it.session.open_questions()
    assert [call.index for call in question.calls] == [1]


def test_a_turn_that_ends_first_says_that_the_call_has_run():
    """The result stays hidden, and "not run" is not said of it."""
    it = recovering(finished(0, "u", "SECRET"), RecoveredCall(index=1, status="unknown", detail="lost"))
    it.session.state.resume_due = False
    it.session.stop(it.now)
    first, second = it.result_texts()
    assert first.startswith("This call has run.")
    assert second.startswith("This call may have run")


def test_nobody_answering_does_not_mean_that_it_has_not_run():
    """An unknown outcome whose question expires: the model is told that the call may have run."""
    it = crash(driven(1, deadline_s=60).prompt(), RecoveredCycle(cycle=1, response=said(called("u", 1)),
                                                                 calls=[UNKNOWN])).step()  # fmt: skip
    assert [question.name for question in it.session.open_questions()] == ["unknown-outcome"]
    it.clock.forward(seconds=61)
    it.session.expire(it.now)
    it.step()
    [text] = it.result_texts()
    assert text.startswith("This call may have run")
    assert "in time" in text


@pytest.mark.parametrize("cancels", [True, False])
def test_an_invocation_that_ends_at_once_does_not_deny_a_run(cancels):
    """A BeforeInvocation hook that fails or cancels ends the turn of a call that may have run."""

    def stop_all(event: BeforeInvocationEvent):
        if not cancels:
            raise ValueError("maintenance")
        event.cancel = "maintenance"

    it = crash(driven(1, hooks=()).prompt(), RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[UNKNOWN]))
    it.agent = make([], lambda scene: calls(("act", {"x": 1})), hooks=[stop_all])
    it.step()
    assert it.result_texts()[0].startswith("This call may have run")
    assert it.valid()


def test_recovered_model_calls_count():
    """Their tokens are in the turn's usage, and its limits."""
    spent = said(called("u", 1))
    spent.usage["totalTokens"] = 990
    it = crash(driven(1).prompt(), RecoveredCycle(cycle=1, response=spent, calls=[finished(0, "u", "a")]))
    assert it.session.state.progress.usage["totalTokens"] == 990
    it.session.state.options.limits.total_tokens = 100
    assert it.step().session.result().stop_reason == "limit_total_tokens"


@pytest.mark.parametrize("response", ["maybe", "y", True, {"results": "sent"}, '{"result": "sent"}', None])
def test_an_answer_that_says_nothing_of_an_outcome_is_refused(response):
    """It is not taken for "skip": what the person knows would be lost."""
    it = crash(driven(1).prompt(), RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[UNKNOWN])).step()
    [question] = it.session.open_questions()
    with pytest.raises(AnswerRefused, match="retry"):
        it.session.check_choices(block(question.id, response))
    it.session.check_choices(block(question.id, "no"))
