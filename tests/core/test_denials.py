"""A person who presses Deny is obeyed, whatever the code that asked makes of the answer."""

import pytest
from tests.core.driving import acts, make, reply, results

from countersign.hooks import BeforeToolCallEvent
from countersign.interventions import Confirm, InterventionHandler


def open_hook(event: BeforeToolCallEvent) -> None:
    """Cancels on one word only."""
    if event.interrupt("ok?") == "n":
        event.cancel_tool = "no"


def own_words(event: BeforeToolCallEvent) -> None:
    """Has words of its own."""
    if event.interrupt("ok?", answers={"approve": "ja", "deny": "nein"}) == "nein":
        event.cancel_tool = "no"


def free_question(event: BeforeToolCallEvent) -> None:
    """Asks for something else than approval."""
    event.interrupt("keep the logs?", answers={"keep": "yes", "drop": "no"})


class Lenient(InterventionHandler):
    name = "lenient"

    def before_tool_call(self, event, **kwargs):
        return Confirm("ok?", evaluate=lambda answer: "ok" in str(answer))


def ran(answer, *hooks, interventions=()):
    """What ran after this answer, and the agent."""
    log = []
    agent = make(log, acts(1), hooks=hooks, interventions=list(interventions))
    agent(reply(agent("go"), answer))
    return log, agent


@pytest.mark.parametrize("answer", ["n: too expensive", "no", "No, wait.", False, {"decision": "reject"}])
def test_a_no_that_the_hook_does_not_know_is_a_no(answer):
    """The hook compares with "n"; the person said no in other words."""
    log, agent = ran(answer, open_hook)
    assert log == []
    assert "a person refused it" in results(agent)[0][1]


@pytest.mark.parametrize("answer", ["nein", "nein: zu teuer", "no"])
def test_a_question_with_words_of_its_own_is_denied_by_them(answer):
    """Alone, and with words after them."""
    assert ran(answer, own_words)[0] == []


def test_a_question_that_knows_no_deny_is_the_hooks_own_matter():
    """Nothing says that "no" means the call."""
    assert ran("no", free_question)[0] == [1]


@pytest.mark.parametrize(("answer", "log"), [("n", []), ("n: not ok", []), ("ok", [1]), ("not really, but ok", [1])])
def test_an_evaluate_cannot_approve_the_questions_own_no(answer, log):
    """What it makes of other words is its own matter."""
    assert ran(answer, interventions=[Lenient()])[0] == log
