"""Countersign's own questions: one about all that is not covered, and an approval of one run."""

import pytest
from tests.core.driving import acts, asking, asks, asks_about_all, make, reply, succeed

from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent


def change(event: BeforeToolCallEvent):
    event.tool_use["input"]["x"] = 99


def approved(agent, result):
    """Approve all that is asked; the result."""
    return agent(reply(result, *("y" for _ in result.interrupts)))


def shown(result):
    """The one question that is open: its name, and what the reason says was asked before."""
    [question] = result.interrupts
    return question.name, [one["was_asked"] for one in [question.reason, *question.reason.get("also", [])]]


@pytest.mark.parametrize("hooks", [[asks("a"), asks("b")], [asks_about_all("a"), asks("b")]])
def test_one_question_is_about_all_answers_whose_code_is_gone(hooks):
    """It shows them all, so that one approval runs the call."""
    log = []
    old = make(log, acts(1), hooks=hooks)
    result = old("go")
    if len(result.interrupts) == 1:  # the batch is asked about first
        result = approved(old, result)
    new = succeed(old, make(log, acts(1), hooks=[]))
    result = approved(new, result)
    assert sorted(shown(result)[1]) == ["a", "b"]
    assert (shown(result)[0], approved(new, result).stop_reason, log) == ("policy-changed", "end_turn", [1])


def test_one_question_is_about_all_batch_approvals_of_a_changed_call():
    """Two hooks approved the batch; the changed call is asked about once."""
    log = []
    agent = make(log, acts(1), hooks=[asks_about_all("a"), asks_about_all("b"), change])
    result = approved(agent, agent("go"))
    assert shown(result) == ("input-changed", ["a", "b"])
    assert (approved(agent, result).stop_reason, log) == ("end_turn", [99])


def test_an_approval_of_a_changed_policy_covers_one_run():
    """No hook asks any more, and one wants the call to run again: a person does so, too."""
    log = []

    def again(event: AfterToolCallEvent):
        event.retry = len(log) < 3

    old = make(log, acts(1), hooks=[asking])
    result = old("go")
    new = succeed(old, make(log, acts(1), hooks=[again]))
    for name, runs in [("policy-changed", []), ("run-again", [1]), ("run-again", [1, 1])]:
        result = approved(new, result)
        assert (shown(result)[0], log) == (name, runs)
    assert (approved(new, result).stop_reason, log) == ("end_turn", [1, 1, 1])
