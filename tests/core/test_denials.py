"""A person who presses Deny is obeyed, whatever the code that asked makes of the answer."""

import pytest
from tests.core.driving import acts, asks, asks_about_all, make, reply, results, succeed

from countersign import tool
from countersign.hooks import BeforeToolCallEvent
from countersign.interventions import Confirm, InterventionHandler
from countersign.models import calls
from countersign.types.tools import ToolContext


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


def known_to_the_hook(event: BeforeToolCallEvent) -> None:
    """Passes on what a person said of another call."""
    known = event.agent.state.get("known")
    answer = event.interrupt("ok?", **({} if known is None else {"response": known}))
    if answer == "t":
        event.agent.state.set("known", "t")
    elif answer != "y":
        event.cancel_tool = "no"


class KnownToTheHandler(InterventionHandler):
    name = "knows"

    def before_tool_call(self, event, **kwargs):
        def judged(answer):
            if answer == "t":
                event.agent.state.set("known", "t")
            return answer == "t"

        known = event.agent.state.get("known")
        return Confirm("ok?", evaluate=judged, **({} if known is None else {"response": known}))


@pytest.mark.parametrize("how", [{"hooks": [known_to_the_hook]}, {"hooks": [], "interventions": [KnownToTheHandler()]}])
def test_an_answer_known_beforehand_does_not_beat_a_no(how):
    """The person trusts one call and refuses the one beside it; the code takes the trust for both."""
    log = []
    agent = make(log, acts(1, 2), **how)
    agent(reply(agent("go"), "t", "n"))
    assert log == [1]


@pytest.mark.parametrize(("answers", "no"), [(None, "n"), ({"approve": "go", "deny": "hold"}, "hold: too late")])
def test_nor_does_it_in_a_tools_body(answers, no):
    """The body gets the person's no, whatever it knows by then; the question's own word may have a reason behind it."""
    heard = []

    @tool(context=True)
    def careful(tool_context: ToolContext) -> None:
        """Ask the first time only."""
        known = {"response": "y"} if heard else {}
        heard.append("asked")
        heard.append(tool_context.interrupt("sure?", answers=answers, **known))

    agent = make([], [calls(("careful", {})), "done"], hooks=[], tools=[careful])
    agent(reply(agent("go"), no))
    assert heard == ["asked", "asked", no]


@pytest.mark.parametrize("gate", [asks, asks_about_all])
def test_nobody_is_asked_beside_a_no_whose_code_is_gone(gate):
    """Another hook came in its place; the call is refused already."""
    log = []
    old = make(log, acts(1), hooks=[gate("this?")])
    first = old("go")
    new = succeed(old, make(log, acts(1), hooks=[gate("that?")]))
    assert (new(reply(first, "n")).stop_reason, log) == ("end_turn", [])
    assert "a person refused it (this?" in results(new)[0][1]


def test_only_a_persons_no_counts_as_one():
    """A call that was approved, and that a hook cancelled all the same, is asked about as often as it is made."""

    def closed(event: BeforeToolCallEvent):
        if event.interrupt("ok?") == "y":
            event.cancel_tool = "the shop is closed"

    agent = make([], [*[calls(("act", {"x": 1}))] * 4, "done"], hooks=[closed])
    result = agent("go")
    for _ in range(4):
        assert result.stop_reason == "interrupt"
        result = agent(reply(result, "y"))
    assert result.stop_reason == "end_turn"
    said = [entry.detail["by"] for entry in agent._here()._session.state.audit if entry.event == "call_refused"]
    assert said == ["policy"] * 4
