"""What the audit trail says of people: each question has its end there, and each approval its line."""

import ast
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.core.driving import acts, asking, asks_about_all, make
from tests.core.test_session import Driven, driven

from countersign import tool
from countersign.agent_core.wire import AUDIT_EVENTS
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent
from countersign.interventions import Confirm, Deny, Guide, InterventionHandler
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop


def lines(it, event):
    return [entry.detail for entry in it.session.state.audit if entry.event == event]


def withdrawn(it):
    return [detail["question"] for detail in lines(it, "question_withdrawn")]


def only_the_second(event: BeforeToolCallEvent):
    if event.tool_use["input"]["x"] == 2:
        asking(event)


def test_a_question_that_is_not_asked_any_more_has_a_line():
    """Policy lets its call go on now."""
    it = driven(1, 2).prompt().step()
    gone = it.session.open_questions()[0].id
    it.agent = make([], ["done"], hooks=[only_the_second])
    assert withdrawn(it.answer("n", 1).step()) == [gone]


def test_a_question_whose_content_changes_has_a_line():
    """Another one takes its place."""
    passes = count()

    def hook(event: BeforeToolCallEvent):
        event.interrupt("ok?", reason=next(passes) if event.tool_use["input"]["x"] == 1 else "sure?")

    it = driven(1, 2, hooks=[hook]).prompt().step()
    gone = it.session.open_questions()[0].id
    assert withdrawn(it.answer("y", 1).step()) == [gone]


def inline(response):
    """A call that is asked about inline, and this is said."""

    async def ask(prompt):
        return response

    return Driven(make([], acts(1), hooks=[], interventions=[HumanInTheLoop(ask=ask)])).prompt().step()


def test_an_inline_approval_stands_beside_what_it_started():
    """There is no question; the handler says who asked."""
    [started] = lines(inline("y"), "tool_started")
    [approval] = started["approved_by"]
    assert (approval["inline"], approval["question"], approval["response"]) == (HumanInTheLoop.name, None, "y")


def test_an_inline_refusal_has_a_line():
    """As one that answers a question does."""
    [refused] = lines(inline("n: too early"), "call_refused")
    assert (refused["by"], refused["question"]) == ("person", None)
    assert "too early" in refused["text"]


class Says(InterventionHandler):
    """A handler that always says the same."""

    name = "says"

    def __init__(self, action):
        self.action = action

    def before_tool_call(self, event, **kwargs):
        return self.action


class Broken(InterventionHandler):
    """A handler that fails closed."""

    name, on_error = "broken", "deny"

    def before_tool_call(self, event, **kwargs):
        raise OSError("no policy file")


def closed(event: BeforeToolCallEvent):
    event.cancel_tool = "the shop is closed"


def all_closed(event: BeforeToolsEvent):
    event.cancel = "the shop is closed"


def played(script, *, hooks=(), interventions=(), tools=None):
    return Driven(make([], script, hooks=hooks, interventions=list(interventions), tools=tools)).prompt().step()


@pytest.mark.parametrize(
    ("hooks", "interventions", "who", "text"),
    [
        ([closed], [], "closed", "the shop is closed"),
        ([], [Says(Deny(reason="too much"))], "says", "DENIED: too much"),
        ([], [Says(Guide(feedback="ask first"))], "says", "GUIDANCE: [says] ask first"),
        ([], [Broken()], "broken", "DENIED: Handler threw: no policy file"),
    ],
)
def test_what_policy_refuses_has_a_line(hooks, interventions, who, text):
    """Without a person: it says which hook or handler, and in which words."""
    it = played(acts(1), hooks=hooks, interventions=interventions)
    [line] = lines(it, "call_refused")
    assert line == {"index": 0, "tool": "act", "by": "policy", "who": who, "question": None, "text": text}


def test_a_persons_no_that_code_took_for_a_yes_is_theirs():
    """It stands, and the trail says whose it is."""
    it = played(acts(1), interventions=[Says(Confirm(prompt="ok?", evaluate=lambda response: True))])
    asked = it.session.open_questions()[0].id
    [line] = lines(it.answer("n").step(), "call_refused")
    assert (line["by"], line["question"]) == ("person", asked)


def test_a_batch_that_a_hook_cancels_says_so():
    """With its name and its words."""
    [line] = lines(played(acts(1, 2), hooks=[all_closed]), "batch_cancelled")
    assert line == {"questions": [], "by": "policy", "who": "all_closed", "text": "the shop is closed"}


@pytest.mark.parametrize("answer", [{"approved": True, "by": "ana"}, "blue"], ids=str)
def test_a_hook_that_refuses_after_an_answer_that_is_no_no_is_policy(answer):
    """Nobody is said to have refused who has not."""

    def ask(event: BeforeToolCallEvent):
        event.interrupt("which")
        event.cancel_tool = "not like that"

    it = Driven(make([], acts(1), hooks=[ask])).prompt().step().answer(answer).step()
    [line] = [entry.detail for entry in it.session.state.audit if entry.event == "call_refused"]
    assert (line["by"], line["question"], line["text"]) == ("policy", None, "not like that")


def test_a_batch_that_a_person_refuses_says_so():
    """The hook only did as they said."""
    it = played(acts(1), hooks=[asks_about_all("all?")])
    asked = it.session.open_questions()[0].id
    [line] = lines(it.answer("n").step(), "batch_cancelled")
    assert line == {"questions": [asked], "by": "person", "who": None, "text": "denied"}


@pytest.mark.parametrize("use", [("unheard-of", {}), ("act", {"x": "many"})])
def test_a_call_that_cant_run_has_a_line(use):
    """Every call of a model does: that it ran, or why not."""
    [line] = lines(played([calls(use), "done"], hooks=[]), "call_refused")
    assert (line["tool"], line["by"]) == (use[0], "countersign")


def test_words_of_a_refusal_are_bounded():
    """A hook's text may be of any length."""

    def talks(event: BeforeToolCallEvent):
        event.cancel_tool = "no, " * 1000

    [line] = lines(played(acts(1), hooks=[talks]), "call_refused")
    assert "text" not in line and line["text_bytes"] > 4000


@pytest.mark.parametrize(("fails", "status"), [(False, "success"), (True, "error")])
def test_the_trail_says_whether_a_tool_failed(fails, status):
    """That it ran is not all."""

    @tool
    def act(x: int) -> int:
        return x // 0 if fails else x

    [line] = lines(played(acts(1), hooks=[], tools=[act]), "tool_ended")
    assert (line["outcome"], line["status"]) == ("result", status)


def raise_to(value):
    def hook(event: BeforeToolCallEvent):
        event.tool_use["input"]["x"] = value

    return hook


def test_the_trail_alone_says_what_was_signed_and_what_ran():
    """Also where a hook has made another call of the model's."""
    it = Driven(make([], acts(1), hooks=[raise_to(45), asking])).prompt().step()
    it.answer("y").step()
    [asked], [started] = lines(it, "question_asked"), lines(it, "tool_started")
    assert (asked["reason"], asked["calls"]) == ("sure?", [{"tool": "act", "input": {"x": 45}}])
    assert started["input"] == {"x": 45}
    assert [approval["question"] for approval in started["approved_by"]] == [asked["question"]]


def test_a_large_input_stands_there_with_its_size():
    """The trail is carried from run to run; the question and the call have the input itself."""
    it = Driven(make([], acts(1), hooks=[raise_to(10**3000), asking])).prompt().step()
    [asked] = lines(it, "question_asked")
    assert "calls" not in asked and asked["calls_bytes"] > 3000


CORE = Path(__file__).parents[2] / "agent_core"


def noted(tree: ast.AST) -> Iterator[ast.expr]:
    """What a module notes in the audit trail: the event of each `note(event, ...)`, and of each `Note`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("note", "_note"):
            yield from node.args
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[1], ast.Dict):
            yield node.elts[0]


def test_the_events_are_those_that_the_core_notes():
    """Whoever reads the trail knows the list: nothing is missing in it, and nothing never comes."""
    trees = [ast.parse(path.read_text()) for path in CORE.glob("**/*.py")]
    named = {
        node.target.id: node.value.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign)
        if isinstance(node.target, ast.Name) and isinstance(node.value, ast.Constant)
    }
    events = [event for tree in trees for event in noted(tree)]
    found = {event.value for event in events if isinstance(event, ast.Constant)}
    found |= {named[event.id] for event in events if isinstance(event, ast.Name) and event.id.isupper()}
    assert found == set(AUDIT_EVENTS)
