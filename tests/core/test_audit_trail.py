"""What the audit trail says of people: each question has its end there, and each approval its line."""

from itertools import count

from tests.core.driving import acts, asking, make
from tests.core.test_session import Driven, driven

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
