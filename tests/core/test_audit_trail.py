"""What the audit trail says of people: each question has its end there, and each approval its line."""

import ast
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from tests.core.driving import acts, asking, make
from tests.core.test_session import Driven, driven

from countersign.agent_core.wire import AUDIT_EVENTS
from countersign.hooks import BeforeToolCallEvent
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
    assert refused["question"] is None and "too early" in refused["text"]


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
