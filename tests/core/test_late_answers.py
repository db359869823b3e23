"""Answers that come while a cycle runs which asks their questions no more: a no counts, and nothing goes unsaid."""

import pytest
from tests.core.driving import acts, asking, block, make
from tests.core.test_session import Driven, driven

from countersign import ToolContext, tool
from countersign.agent_core.wire import timestamp
from countersign.errors import AnswerRefused
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop


def late(it: Driven, early, response, agent=None):
    """Answer the first question, and the second one while the cycle runs that this begins."""
    first, second = it.session.open_questions()
    it.agent = agent or it.agent
    it.session.answer(block(first.id, early), it.now, "test")
    given = it.session.next_cycle(it.now)
    it.clock.forward(seconds=1)
    it.session.answer(block(second.id, response), it.now, "test")
    it.run_one(given)
    return it


def events(it, name):
    return [entry.detail for entry in it.session.state.audit if entry.event == name]


def dearer():
    """A hook whose question about the second call shows another price on each pass."""
    prices = iter(range(1, 9))

    def hook(event: BeforeToolCallEvent):
        second = event.tool_use["input"]["x"] == 2
        if event.interrupt("ok?", reason=next(prices) if second else "sure?") != "y":
            event.cancel_tool = "denied"

    return hook


def test_a_no_holds_for_the_question_that_took_the_place_of_its_own():
    """A refusal holds whatever changed; the person is not asked again."""
    log = []
    it = late(driven(1, 2, log=log, hooks=[dearer()]).prompt().step(), "y", "n").step()
    assert (it.session.open_questions(), log) == ([], [1])
    assert it.result_texts() == ["1", "denied"]


def test_a_yes_to_what_has_changed_since_is_void():
    """The question that took its place says why the person is asked again, and so does the audit."""
    it = late(driven(1, 2, hooks=[dearer()]).prompt().step(), "n", "y").step()
    [question] = it.session.open_questions()
    assert question.fault.startswith("the reason changed since it was approved")
    assert [line["why"] for line in events(it, "approval_void")] == [question.fault]


def test_a_no_holds_though_nobody_asks_any_more():
    """Policy let the call go on, and its body asks; whatever is said to that, the earlier question has its no."""
    ran = []

    @tool(context=True)
    def act(x: int, tool_context: ToolContext) -> int:
        """Act, if a person wants it."""
        tool_context.interrupt("really?")
        ran.append(x)
        return x

    script = [calls(("act", {"x": 1}), ("act", {"x": 2})), "done"]
    it = Driven(make([], script, tools=[act])).prompt().step()
    late(it, "n", "n", make([], ["done"], hooks=[only_the_first], tools=[act])).step()
    it.answer("y").step()
    assert (it.session.open_questions(), ran) == ([], [])
    assert it.result_texts()[1].startswith("Not run: a person refused it (ok?")


def only_the_first(event: BeforeToolCallEvent):
    if event.tool_use["input"]["x"] == 1:
        asking(event)


def test_an_answer_may_come_before_its_session_knows_the_question():
    """A query has shown what the cycle asks; once the session has the question, the answer counts from when it came."""
    it = driven(1).prompt()
    given = it.session.next_cycle(it.now)
    it.clock.forward(seconds=1)
    it.run_one(given)  # asks
    [question] = it.session.open_questions()
    came = it.now
    it.clock.forward(seconds=1)
    it.session.answer_asked_by(block(question.id, "y"), came)
    assert question.answer.at == timestamp(came)
    assert it.step().result_texts() == ["1"]


def test_an_answer_is_never_to_a_question_that_was_asked_after_it():
    """Nobody can have meant it, whatever id they gave; the question stays open."""
    it = driven(1).prompt()
    came, given = it.now, it.session.next_cycle(it.now)
    it.clock.forward(seconds=1)
    it.run_one(given)
    [question] = it.session.open_questions()
    with pytest.raises(AnswerRefused, match="was asked after this answer had come"):
        it.session.answer_asked_by(block(question.id, "y"), came)
    assert it.session.open_questions() == [question]


def test_an_answer_that_came_too_late_has_a_line():
    """A person trusts a tool, and the call beside it runs before their no is there."""
    log = []
    it = Driven(make(log, acts(1, 2), hooks=[], interventions=[HumanInTheLoop(enable_trust=True)])).prompt().step()
    unused = it.session.open_questions()[1]
    late(it, "t", "n").step()
    assert log == [1, 2]
    assert events(it, "answer_unused") == [{"question": unused.id, "name": unused.name}]
