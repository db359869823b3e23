"""Rules for approvals: run what was signed, once, and let a refusal win."""

import asyncio

import pytest
from tests.core.driving import Clock, StillEffects, acts, asking, make, questions, reply, results, succeed, valid

from countersign import Agent, InterventionHandler, ScriptedModel, tool
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import SessionOptions
from countersign.errors import EventLoopException
from countersign.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookProvider,
    MessageAddedEvent,
)
from countersign.interventions import Confirm, Proceed, Transform
from countersign.models import calls
from countersign.types.tools import ToolContext
from countersign.vended_interventions.hitl import HumanInTheLoop


def change_to(value):
    def later(event: BeforeToolCallEvent):
        event.tool_use["input"]["x"] = value() if callable(value) else value

    return later


def test_the_question_shows_what_will_run():
    """An input that a later hook changes is the one that is shown, defaults filled in, and the one that runs."""
    log = []
    agent = make(log, acts(1), hooks=[asking, change_to(9)])
    result = agent("go")
    assert questions(agent)[0].calls[0].input == {"x": 9}
    agent(reply(result, "y"))
    assert log == [9]


def test_defaults_are_part_of_what_is_shown():
    """A parameter that the model leaves out is shown with its default."""
    agent = make([], [calls(("act", {})), "done"])
    agent("go")
    assert questions(agent)[0].calls[0].input == {"x": 0}


def test_an_approval_is_void_when_the_input_changes_afterwards():
    """Another input on resume asks the person again, under another id; only the signed one runs."""
    values, log = iter([5, 6, 6]), []
    agent = make(log, acts(1), hooks=[asking, change_to(lambda: next(values))])
    first = agent("go")
    second = agent(reply(first, "y"))
    assert second.stop_reason == "interrupt"
    assert second.interrupts[0].id != first.interrupts[0].id
    assert questions(agent)[-1].fault == "what would run changed since it was approved by somebody"
    assert log == []
    agent(reply(second, "y"))
    assert log == [6]


def by_reason(reasons):
    def hook(event: BeforeToolCallEvent):
        if event.interrupt("ok?", reason=next(reasons)) != "y":
            event.cancel_tool = "denied"

    return hook


def test_an_approval_is_void_when_the_reason_changes():
    """An approval holds for the reason that was shown; the question that follows says so, and so does the audit."""
    log = []
    agent = make(log, acts(1), hooks=[by_reason(iter(["low risk", "high risk", "high risk"]))])
    first = agent("go")
    assert questions(agent)[0].fault is None
    second = agent(reply(first, "y"))
    assert [i.reason for i in second.interrupts] == ["high risk"]
    why = questions(agent)[-1].fault
    assert why == "the reason changed since it was approved by somebody"
    noted = [entry.detail for entry in agent._here()._session.state.audit if entry.event == "approval_void"]
    assert noted == [{"tool": "act", "questions": ["ok?"], "why": why}]
    agent(reply(second, "y"))
    assert log == [1]


def test_a_refusal_survives_a_changed_reason():
    """A "no" holds whatever else changes; nobody is asked again."""
    log = []
    agent = make(log, acts(1), hooks=[by_reason(iter(["low risk", "high risk"]))])
    assert agent(reply(agent("go"), "n")).stop_reason == "end_turn"
    assert (log, results(agent)) == ([], [("error", "denied")])


def approve_batch(event: BeforeToolsEvent):
    if event.interrupt("batch") != "y":
        event.cancel = "denied"


def test_a_batch_question_shows_every_call():
    """The batch question lists each call with its input."""
    agent = make([], acts(1, 2), hooks=[approve_batch])
    agent("go")
    assert [call.input for call in questions(agent)[0].calls] == [{"x": 1}, {"x": 2}]


def test_a_call_changed_after_a_batch_approval_is_asked_alone():
    """The unchanged call runs as signed; the changed one asks for itself."""

    def change(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 2:
            event.tool_use["input"]["x"] = 20

    log = []
    agent = make(log, acts(1, 2), hooks=[approve_batch, change])
    result = agent(reply(agent("go"), "y"))
    assert (log, [i.name for i in result.interrupts]) == ([1], ["input-changed"])
    agent(reply(result, "y"))
    assert log == [1, 20]


@pytest.mark.parametrize(("signed", "runs"), [(1, True), (0, False), (1, 1.0)])
def test_a_changed_json_type_is_a_change(signed, runs):
    """1, 1.0 and true are equal in Python and different in JSON: the call is asked about again."""
    got = []

    @tool
    def act(x) -> str:
        got.append(x)
        return "ok"

    agent = make([], acts(signed), hooks=[approve_batch, change_to(runs)], tools=[act])
    assert agent(reply(agent("go"), "y")).stop_reason == "interrupt"
    assert got == []


def retry_once(event: AfterToolCallEvent):
    if not event.agent.state.get("retried"):
        event.agent.state.set("retried", True)
        event.retry = True


@pytest.mark.parametrize(
    ("gate", "idempotent", "asked_again"),
    [(asking, False, True), (asking, True, False), (approve_batch, False, True), (approve_batch, True, False)],
)
def test_an_approval_covers_one_execution(gate, idempotent, asked_again):
    """A retry by a hook asks again, unless the tool is idempotent."""
    log = []

    @tool(idempotent=idempotent)
    def act(x: int) -> int:
        log.append(x)
        return x

    agent = make([], acts(1), hooks=[gate, retry_once], tools=[act])
    result = agent(reply(agent("go"), "y"))
    assert (result.stop_reason == "interrupt") is asked_again
    assert log == ([1] if asked_again else [1, 1])
    if asked_again:
        assert agent(reply(result, "y")).stop_reason == "end_turn"
        assert log == [1, 1]


def test_a_refused_retry_does_not_run():
    """The question about a retry can be refused like any other."""
    log = []
    agent = make(log, acts(1), hooks=[approve_batch, retry_once])
    agent(reply(agent(reply(agent("go"), "y")), "n"))
    assert log == [1]
    assert valid(agent)


@pytest.mark.parametrize("gate", [asking, approve_batch])
def test_a_removed_hook_does_not_lift_a_refusal(gate):
    """If the code that asked is gone after the "no", the call does not run and nobody is asked."""
    log = []
    old = make(log, acts(1), hooks=[gate])
    result = old("go")
    new = succeed(old, make(log, acts(1), hooks=[]))
    assert new(reply(result, "n")).stop_reason == "end_turn"
    assert (log, results(new)[0][0]) == ([], "error")


@pytest.mark.parametrize("gate", [asking, approve_batch])
@pytest.mark.parametrize(("verdict", "ran"), [("y", [1]), ("n", [])])
def test_a_removed_hook_turns_an_approval_into_a_question(gate, verdict, ran):
    """If the code that asked is gone after the "y", a person sees the old answer and decides."""
    log = []
    old = make(log, acts(1), hooks=[gate])
    result = old("go")
    new = succeed(old, make(log, acts(1), hooks=[]))
    result = new(reply(result, "y"))
    assert log == []
    assert [i.name for i in result.interrupts] == ["policy-changed"]
    assert result.interrupts[0].reason["response"] == "y"
    new(reply(result, verdict))
    assert log == ran


def test_a_question_that_nobody_asks_any_more_is_withdrawn():
    """Policy that stopped asking before anybody answered lets the call go on; its question is off the table."""
    log = []
    old = make(log, acts(1, 2), hooks=[asking])
    result = old("go")
    gone, kept = result.interrupts

    def second_only(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 2:
            asking(event)

    new = succeed(old, make(log, acts(1, 2), hooks=[second_only]))
    assert new([{"interruptResponse": {"interruptId": kept.id, "response": "y"}}]).stop_reason == "end_turn"
    assert sorted(log) == [1, 2]
    assert gone.id not in [question.id for question in new._here()._session.open_questions()]


def test_two_calls_with_one_tool_use_id():
    """Each of them has its own question and its own result."""
    log = []
    script = [calls(("act", {"x": 1}, "same"), ("act", {"x": 2}, "same")), "done"]
    agent = make(log, script)
    result = agent("go")
    assert len({i.id for i in result.interrupts}) == 2
    agent(reply(result, "y", "n"))
    assert (log, results(agent)) == ([1], [("success", "1"), ("error", "denied")])
    assert valid(agent)


@pytest.mark.parametrize(
    "use", [("nothing", {"x": 1}), ("act", {"x": "many"}), ("act", {"y": [1]}), ("act", "{broken")]
)
@pytest.mark.parametrize("gate", [asking, approve_batch])
def test_nobody_is_asked_about_what_cannot_run(use, gate):
    """An unknown tool and an input that does not fit get an error result without asking."""

    @tool
    def act(x: int, *, y: int = 0) -> int:
        return x

    agent = make([], [calls(use), "done"], hooks=[gate], tools=[act])
    result = agent("go")
    assert result.stop_reason == "end_turn"
    assert results(agent)[0][0] == "error"


def swallow_exception(event):
    try:
        return event.interrupt("ok?")
    except Exception:
        return "y"


def swallow_all(event):
    try:
        return event.interrupt("ok?")
    except:  # noqa: E722 (the very thing under test)
        return "n"


@pytest.mark.parametrize("swallow", [swallow_exception, swallow_all])
@pytest.mark.parametrize(("said", "ran"), [("y", [1]), ("n", [])])
def test_a_swallowed_interrupt_pauses_all_the_same(swallow, said, ran):
    """`except Exception` and a bare `except` around an interrupt change nothing about the pause."""

    def hook(event: BeforeToolCallEvent):
        if swallow(event) != "y":
            event.cancel_tool = "denied"

    log = []
    agent = make(log, acts(1), hooks=[hook])
    result = agent("go")
    assert (result.stop_reason, log) == ("interrupt", [])
    agent(reply(result, said))
    assert log == ran


def test_a_swallowed_batch_interrupt_pauses_all_the_same():
    """The same for a batch hook that cancels in its bare `except`."""

    def hook(event: BeforeToolsEvent):
        if swallow_all(event) != "y":
            event.cancel = "denied"

    log = []
    agent = make(log, acts(1), hooks=[hook])
    result = agent("go")
    assert result.stop_reason == "interrupt"
    agent(reply(result, "y"))
    assert log == [1]


def test_an_error_after_a_swallowed_interrupt_pauses_all_the_same():
    """Code that fails because it swallowed its own interrupt has asked all the same."""

    def hook(event: BeforeToolCallEvent):
        try:
            said = event.interrupt("ok?")
        except BaseException:
            said = None
        event.cancel_tool = said.lower() != "y"

    log = []
    agent = make(log, acts(1), hooks=[hook])
    result = agent("go")
    assert result.stop_reason == "interrupt"
    agent(reply(result, "Y"))
    assert log == [1]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_that_swallows_its_interrupt_pauses(asynchronous):
    """A tool's body can't run past its own question either."""
    if asynchronous:

        @tool(context=True)
        async def act(tool_context: ToolContext) -> str:
            return swallow_all(tool_context)

    else:

        @tool(context=True)
        def act(tool_context: ToolContext) -> str:
            return swallow_all(tool_context)

    agent = Agent(ScriptedModel([calls(("act", {})), "done"]), tools=[act])
    result = agent("go")
    assert result.stop_reason == "interrupt"
    agent(reply(result, "really"))
    assert results(agent) == [("success", "really")]


def test_a_repeated_refused_call_is_bounded():
    """A model that keeps asking for a call that was refused stops bothering people, defaults or not."""
    log, asked = [], 0

    def script(scene):
        return calls(("act", {})) if scene.call < 8 else "done"

    agent = make(log, script)
    result = agent("go")
    while result.stop_reason == "interrupt":
        asked += 1
        result = agent(reply(result, "n"))
    assert (asked, log) == (3, [])


@pytest.mark.parametrize("late", [BeforeToolCallEvent, AfterToolCallEvent, AfterToolsEvent, BeforeToolsEvent,
                                  MessageAddedEvent, AfterInvocationEvent])  # fmt: skip
def test_a_raising_hook_leaves_a_valid_conversation(late):
    """Whatever event a hook fails on, the error is its own, and every call has its one result."""

    def broken(event):
        raise KeyError("bug")

    log = []
    agent = make(log, acts(1, 2), hooks=[])
    agent.add_hook(broken, late)
    with pytest.raises(EventLoopException) as caught:
        agent("go")
    assert isinstance(caught.value.original_exception, KeyError)
    assert valid(agent)
    assert len(log) == len(set(log))


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_raising_message_hook_leaves_a_valid_conversation(role):
    """A MessageAddedEvent hook that fails on one kind of message leaves no call without a result."""

    def broken(event: MessageAddedEvent):
        if event.message["role"] == role and len(event.agent.messages) > 1:
            raise KeyError("bug")

    agent = make([], acts(1), hooks=[broken])
    with pytest.raises(EventLoopException):
        agent("go")
    assert valid(agent)


def test_a_raising_hook_on_resume_leaves_a_valid_conversation():
    """An approved call whose hook fails on resume gets an error result; the sibling's result is kept."""

    def hook(event: BeforeToolCallEvent):
        if event.tool_use["input"]["x"] == 1:
            event.interrupt("ok?")
            raise KeyError("bug")

    log = []
    agent = make(log, acts(1, 2), hooks=[hook])
    result = agent("go")
    with pytest.raises(EventLoopException):
        agent(reply(result, "y"))
    assert log == [2]
    assert results(agent)[1] == ("success", "2")
    assert valid(agent)


def test_an_after_hook_that_raises_costs_no_results():
    """A failing After callback is called once per call, and the results that the tools returned are kept."""
    fired = []

    def after(event: AfterToolCallEvent):
        fired.append(event.tool_use["input"]["x"])
        if event.tool_use["input"]["x"] == 1:
            raise KeyError("bug")

    agent = make([], acts(1, 2), hooks=[after])
    with pytest.raises(EventLoopException):
        agent("go")
    assert sorted(fired) == [1, 2]
    assert results(agent) == [("success", "1"), ("success", "2")]


class Counting(InterventionHandler):
    """Counts what it hears, and asks."""

    name = "counting"

    def __init__(self):
        self.heard = 0

    def before_tool_call(self, event, **kwargs):
        self.heard += 1
        return Confirm(prompt="?") if event.tool_use["input"]["x"] == 1 else Proceed()


def test_handlers_are_not_asked_again_about_finished_calls():
    """On resume only the unfinished calls are decided anew."""
    counting = Counting()
    agent = make([], acts(1, 2), hooks=[], interventions=[counting])
    agent(reply(agent("go"), "y"))
    assert counting.heard == 2


class BatchCounter(HookProvider):
    """Counts batches, and asks about each."""

    def __init__(self):
        self.batches = 0

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeToolsEvent, self.count)

    def count(self, event):
        self.batches += 1
        event.interrupt("batch")


def test_a_batch_hook_counts_each_batch_once():
    """The pass that ends in the batch's question does not count."""
    counter = BatchCounter()
    agent = make([], acts(1), hooks=[counter])
    agent(reply(agent("go"), "y"))
    assert counter.batches == 1


def timed(agent, clock, **options):
    """A session of an agent on a clock of ours: (session, step), where step runs what is due."""
    session = Session(SessionState(session_id="s", agent="agent", options=SessionOptions(lifetime="open", **options)))

    def step():
        async def go():
            while (given := session.next_cycle(clock.moment)) is not None:
                end = await run_cycle(agent, given, session.conversation(), StillEffects(agent, clock))
                session.finish_cycle(end.outcome, clock.moment)

        asyncio.run(go())

    session.prompt("go", clock.moment)
    step()
    return session, step


def answer(session, clock, response):
    blocks = [
        {"interruptResponse": {"interruptId": question.id, "response": response}}
        for question in session.open_questions()
    ]
    return session.answer(blocks, clock.moment, "test")


@pytest.mark.parametrize(("hours", "ran"), [(23, [1]), (25, [])])
def test_an_approval_lapses(hours, ran):
    """A call that has not started within the time to live of its approval is asked about again."""
    log, clock = [], Clock()
    session, step = timed(make(log, acts(1)), clock)
    answer(session, clock, "y")
    clock.forward(hours=hours)
    step()
    assert log == ran
    if not ran:
        answer(session, clock, "y")
        step()
        assert log == [1]


@pytest.mark.parametrize(("hour", "asked_again"), [(10, 0), (1, 1)])
@pytest.mark.parametrize("beside", [True, False])
def test_an_approval_lapses_from_when_it_was_said(hour, asked_again, beside):
    """A signal may have waited for a worker: here until 26 hours after the question."""
    log, clock = [], Clock()
    session, step = timed(make(log, acts(1)), clock)
    said = f"2030-01-01T{hour:02}:00:00Z"
    inner = {"interruptId": session.open_questions()[0].id, "response": "y"}
    block = {"at": said, "interruptResponse": inner} if beside else {"interruptResponse": {**inner, "at": said}}
    clock.forward(hours=26)
    session.answer([block], clock.moment, "signal")
    step()
    assert (log, len(session.open_questions())) == ([] if asked_again else [1], asked_again)


def test_a_clock_that_is_far_behind_does_not_void_an_approval():
    """Nobody answers before they are asked."""
    log, clock = [], Clock()
    session, step = timed(make(log, acts(1)), clock)
    inner = {"interruptId": session.open_questions()[0].id, "response": "y", "at": "2001-01-01T00:00:00Z"}
    session.answer({"interruptResponse": inner}, clock.moment, "signal")
    step()
    assert log == [1]


def test_nobody_makes_an_approval_last_longer_by_saying_that_it_was_said_later():
    """A time to come is no claim that counts."""
    log, clock = [], Clock()
    session, step = timed(make(log, acts(1)), clock)
    inner = {"interruptId": session.open_questions()[0].id, "response": "y", "at": "2031-01-01T00:00:00Z"}
    session.answer({"interruptResponse": inner}, clock.moment, "signal")
    clock.forward(hours=25)
    step()
    assert (log, len(session.open_questions())) == ([], 1)


def test_a_refusal_does_not_lapse():
    """A "no" holds however late the worker is."""
    log, clock = [], Clock()
    session, step = timed(make(log, acts(1)), clock)
    answer(session, clock, "n")
    clock.forward(days=3)
    step()
    assert (log, session.open_questions()) == ([], [])


class Second(InterventionHandler):
    """Wants a signature beside that of `HumanInTheLoop`."""

    name = "second"

    def before_tool_call(self, event, **kwargs):
        return Confirm("and you?")


@pytest.mark.parametrize(("hours", "asked"), [(23, 1), (25, 2)])
@pytest.mark.parametrize("said", ["y", {"decision": "edit", "input": {"x": 7}}])
def test_an_inline_approval_lapses_too(hours, asked, said):
    """Who approved inline is asked once more if another question kept the call waiting for so long."""
    log, prompts, clock = [], [], Clock()

    def ask(prompt):
        prompts.append(prompt)
        return said if len(prompts) == 1 else "y"

    agent = make(log, acts(1), hooks=[], interventions=[HumanInTheLoop(ask=ask), Second()])
    session, step = timed(agent, clock)
    clock.forward(hours=hours)
    answer(session, clock, "y")
    step()
    assert (log, len(prompts)) == ([1 if said == "y" else 7], asked)


@pytest.mark.parametrize("gate", [asking, approve_batch])
def test_expired_is_not_denied(gate):
    """An expired question ends its calls with words of their own, without entering hook or tool again."""
    log, passes, clock = [], [], Clock()

    def counted(event: BeforeToolCallEvent):
        passes.append(1)

    agent = make(log, acts(1), hooks=[gate, counted])
    session, step = timed(agent, clock, deadline_s=60.0)
    before = len(passes)
    clock.forward(seconds=61)
    session.expire(clock.moment)
    step()
    assert (log, len(passes)) == ([], before)
    ((status, text),) = results(agent)
    assert status == "error"
    assert "expired" in text
    assert "denied" in text  # "it was not denied"


@pytest.mark.parametrize("how", ["by name", "by selection", "by a handler"])
def test_an_edit_covers_the_tool_that_was_shown(how):
    """What turns the edited call into one of another tool is asked about: nobody has signed that."""
    ran = []

    @tool
    def read(path: str) -> str:
        """Read."""
        ran.append(("read", path))
        return path

    @tool
    def delete(path: str) -> str:
        """Delete."""
        ran.append(("delete", path))
        return path

    def rename(event):
        event.tool_use["name"] = "delete"

    def routed(event: BeforeToolCallEvent):
        if not event.tool_use["input"]["path"].startswith("/prod") or event.tool_use["name"] != "read":
            return
        if how == "by name":
            rename(event)
        elif how == "by selection":
            event.selected_tool = event.agent.tool_registry.get("delete")

    class Reroutes(InterventionHandler):
        name = "reroutes"

        def before_tool_call(self, event, **kwargs):
            there = event.tool_use["input"]["path"].startswith("/prod")
            return Transform(rename) if how == "by a handler" and there else Proceed()

    agent = Agent(ScriptedModel([calls(("read", {"path": "/tmp/x"})), "done"]), tools=[read, delete], hooks=[routed],
                  interventions=[HumanInTheLoop(), Reroutes()])  # fmt: skip
    first = agent("go")
    second = agent(reply(first, {"decision": "edit", "input": {"path": "/prod/x"}}))
    assert (second.stop_reason, ran) == ("interrupt", [])
    third = agent(reply(second, "y"))
    assert (third.stop_reason, ran) == ("end_turn", [("delete", "/prod/x")])


def test_a_denied_batch_does_not_run_whatever_the_hook_makes_of_it():
    """The question's own word for no is obeyed at the batch, too."""
    log = []

    def deaf(event: BeforeToolsEvent):
        event.interrupt("plan", reason="x")

    agent = make(log, acts(1, 2), hooks=[deaf])
    result = agent(reply(agent("go"), "n"))
    assert (result.stop_reason, log) == ("end_turn", [])
    assert all("a person refused it (plan" in text for _, text in results(agent))
