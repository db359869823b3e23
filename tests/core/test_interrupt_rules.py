"""The rules of the interrupts document."""

import pytest
from tests.core.driving import acts, asking, make, reply, results, valid

from countersign import Agent, ScriptedModel, tool
from countersign.errors import EventLoopException
from countersign.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeToolCallEvent, BeforeToolsEvent
from countersign.models import calls
from countersign.types.tools import ToolContext


def test_all_hooks_run_and_all_may_ask():
    """Every hook on an interrupted event runs, and each may raise its own interrupt in the same pass."""
    seen = []

    def first(event: BeforeToolCallEvent):
        event.interrupt("first")

    def second(event: BeforeToolCallEvent):
        event.interrupt("second")

    def third(event: BeforeToolCallEvent):
        seen.append("third")

    log = []
    agent = make(log, acts(1), hooks=[first, second, third])
    result = agent("go")
    assert [interrupt.name for interrupt in result.interrupts] == ["first", "second"]
    assert seen == ["third"]
    assert agent(reply(result, "y", "y")).stop_reason == "end_turn"
    assert log == [1]


def test_one_answer_of_two_hooks_keeps_the_other_question():
    """An answer to one hook's question leaves the other one open, with the same id."""

    def first(event: BeforeToolCallEvent):
        event.interrupt("first")

    def second(event: BeforeToolCallEvent):
        event.interrupt("second")

    log = []
    agent = make(log, acts(1), hooks=[first, second])
    before = agent("go")
    after = agent(reply(before, "y"))
    assert [interrupt.id for interrupt in after.interrupts] == [before.interrupts[1].id]
    assert log == []
    agent(reply(after, "y"))
    assert log == [1]


def test_one_hook_asks_twice_in_turn():
    """A hook may ask, get its answer, and ask again; the first answer is not asked for anew."""
    got = []

    def hook(event: BeforeToolCallEvent):
        first = event.interrupt("first")
        got.append((first, event.interrupt("second", reason=first)))

    log = []
    agent = make(log, acts(1), hooks=[hook])
    result = agent("go")
    assert [i.name for i in result.interrupts] == ["first"]
    result = agent(reply(result, "a"))
    assert [(i.name, i.reason) for i in result.interrupts] == [("second", "a")]
    agent(reply(result, "b"))
    assert got == [("a", "b")]
    assert log == [1]


def test_one_tool_asks_twice_in_turn():
    """A tool's body may ask, get its answer, and ask again."""

    @tool(context=True)
    def act(tool_context: ToolContext) -> str:
        first = tool_context.interrupt("first")
        return first + tool_context.interrupt("second")

    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[act])
    result = agent(reply(agent("go"), "a"))
    assert [i.name for i in result.interrupts] == ["second"]
    agent(reply(result, "b"))
    assert results(agent) == [("success", "ab")]


def test_partial_answers():
    """Of two interrupted calls the answered one runs and the other keeps waiting; results stand in call order."""
    log = []
    agent = make(log, acts(1, 2))
    result = agent("go")
    rest = agent(reply(result, "y")[:1])
    assert rest.stop_reason == "interrupt"
    assert [i.id for i in rest.interrupts] == [result.interrupts[1].id]
    assert log == [1]
    agent(reply(rest, "y"))
    assert log == [1, 2]
    assert results(agent) == [("success", "1"), ("success", "2")]


def test_results_stand_in_call_order_when_answered_backwards():
    """The second call answered first still has the second result."""
    log = []
    agent = make(log, acts(1, 2))
    result = agent("go")
    rest = agent([reply(result, "y", "y")[1]])
    agent(reply(rest, "y"))
    assert log == [2, 1]
    assert results(agent) == [("success", "1"), ("success", "2")]


def test_calls_that_are_not_interrupted_run():
    """A call beside an interrupted one runs at once, and only once."""

    def hook(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 1:
            event.interrupt("ok?")

    log = []
    agent = make(log, acts(1, 2), hooks=[hook])
    result = agent("go")
    assert log == [2]
    agent(reply(result, "y"))
    assert log == [2, 1]


def test_after_events_around_an_interrupt():
    """AfterToolCallEvent skips the interrupted call; AfterToolsEvent fires both times, with that cycle's results."""
    calls_seen, batches = [], []

    def gate(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 1:
            event.interrupt("ok?")

    def after(event: AfterToolCallEvent):
        calls_seen.append(event.tool_use["input"]["x"])

    def after_all(event: AfterToolsEvent):
        batches.append([part["toolResult"]["content"][0]["text"] for part in event.message["content"]])

    agent = make([], acts(1, 2), hooks=[gate, after, after_all])
    result = agent("go")
    assert (calls_seen, batches) == ([2], [["2"]])
    agent(reply(result, "y"))
    assert (calls_seen, batches) == ([2, 1], [["2"], ["1"]])


def test_a_batch_interrupt_holds_everything():
    """While a batch question is open no tool runs and no BeforeToolCallEvent fires; then the batch hook runs again."""
    fired, batch_passes = [], []

    def batch(event: BeforeToolsEvent):
        batch_passes.append(event.interrupt("batch"))

    def each(event: BeforeToolCallEvent):
        fired.append(event.tool_use["input"]["x"])

    log = []
    agent = make(log, acts(1, 2), hooks=[batch, each])
    result = agent("go")
    assert (fired, log, batch_passes) == ([], [], [])
    agent(reply(result, "y"))
    assert (fired, sorted(log), batch_passes) == ([1, 2], [1, 2], ["y"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "tool cancelled by user"), ("", "tool cancelled by user"), ("use staging", "use staging")],
)
def test_cancel_tool(value, text):
    """True, an empty text and a text all cancel the call; the text reaches the model."""

    def hook(event: BeforeToolCallEvent):
        event.cancel_tool = value

    log = []
    agent = make(log, acts(1), hooks=[hook])
    agent("go")
    assert (log, results(agent)) == ([], [("error", text)])


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "Tool cancelled by hook"), ("", "Tool cancelled by hook"), ("not today", "not today")],
)
def test_cancel_batch(value, text):
    """True, an empty text and a text all cancel each call of the batch, without any BeforeToolCallEvent."""
    fired = []

    def hook(event: BeforeToolsEvent):
        event.cancel = value

    def each(event: BeforeToolCallEvent):
        fired.append(1)

    agent = make([], acts(1, 2), hooks=[hook, each])
    agent("go")
    assert (results(agent), fired) == ([("error", text)] * 2, [])


def test_one_name_in_two_hooks_is_an_error():
    """Two hooks that ask under one name are told so; the conversation stays valid."""

    def one(event: BeforeToolCallEvent):
        event.interrupt("same")

    def other(event: BeforeToolCallEvent):
        event.interrupt("same")

    agent = make([], acts(1), hooks=[one, other])
    with pytest.raises(EventLoopException, match="interrupt name used more than once"):
        agent("go")
    assert valid(agent)


@pytest.mark.parametrize("reason", [object(), {1: "a"}, float("nan"), ("a",)])
def test_a_reason_that_is_not_json(reason):
    """A reason that could not reach a person unchanged is refused where it is given."""

    def hook(event: BeforeToolCallEvent):
        event.interrupt("ok?", reason=reason)

    with pytest.raises(EventLoopException) as caught:
        make([], acts(1), hooks=[hook])("go")
    assert isinstance(caught.value.original_exception, TypeError)


@pytest.mark.parametrize("answer", [False, 0, "", [], {}, None, "n"])
def test_falsy_answers_reach_the_hook(answer):
    """False, 0, "", [], {} and null are answers, with their JSON types."""
    got = []

    def hook(event: BeforeToolCallEvent):
        got.append(event.interrupt("ok?"))
        event.cancel_tool = True

    agent = make([], acts(1), hooks=[hook])
    assert agent(reply(agent("go"), answer)).stop_reason == "end_turn"
    assert got == [answer]
    assert type(got[0]) is type(answer)


def test_a_prompt_while_questions_are_open_is_a_type_error():
    """An interrupted agent takes answers only, in Strands' words."""
    agent = make([], acts(1))
    agent("go")
    with pytest.raises(TypeError, match="must resume from interrupt"):
        agent("something else")


def test_ids_are_never_reused_by_later_turns():
    """The same call with the same toolUseId in a later turn is another question."""
    same = calls(("act", {"x": 1}, "tool-1"))
    agent = make([], [same, "done", same, "done"], hooks=[asking])
    first = agent("go")
    agent(reply(first, "y"))
    second = agent("again")
    assert second.interrupts[0].id != first.interrupts[0].id


def test_a_waiting_body_does_not_run_for_a_siblings_answer():
    """A tool that waits for its own answer is not started again when another call is answered."""
    started = []

    @tool(context=True)
    def act(x: int, tool_context: ToolContext) -> str:
        started.append(x)
        return tool_context.interrupt("ok?", reason=x)

    agent = Agent(ScriptedModel(acts(1, 2)), tools=[act])
    rest = agent(reply(agent("go"), "a")[:1])
    agent(reply(rest, "b"))
    assert (sorted(started), results(agent)) == ([1, 1, 2, 2], [("success", "a"), ("success", "b")])


def test_one_name_with_two_reasons_in_a_hook_is_an_error():
    """Asking two things under one name can never be answered; it is said instead of asked for ever."""

    def hook(event: BeforeToolCallEvent):
        event.interrupt("ok?", reason=1)
        event.interrupt("ok?", reason=2)

    agent = make([], acts(1), hooks=[hook])
    with pytest.raises(EventLoopException, match="used more than once"):
        agent(reply(agent("go"), "y"))
    assert valid(agent)


def test_one_name_with_two_reasons_in_a_tool_is_an_error():
    """The same in a tool's body: its call ends with an error."""

    @tool(context=True)
    def act(x: int, tool_context: ToolContext) -> str:
        return tool_context.interrupt("ok?", reason=1) + tool_context.interrupt("ok?", reason=2)

    agent = Agent(ScriptedModel(acts(1)), tools=[act])
    agent(reply(agent("go"), "y"))
    ((status, text),) = results(agent)
    assert status == "error"
    assert "used more than once" in text
