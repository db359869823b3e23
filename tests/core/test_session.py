"""The session machine: prompts, stops, deadlines, failed cycles, and a conversation that stays valid."""

import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.driving import Clock, StillEffects, acts, asking, block, make

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.effects import current_effects
from countersign.agent_core.messages import history_faults, message_text, user_message
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import (
    ModelResponse,
    RecoveredCall,
    RecoveredCycle,
    Recovery,
    SessionOptions,
    ToolOutcome,
)
from countersign.errors import AnswerRefused
from countersign.hooks import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
)
from countersign.models import calls
from countersign.types.tools import ToolContext


class Driven:
    """A session of an agent on a clock of ours."""

    def __init__(self, agent, **options):
        self.agent, self.clock = agent, Clock()
        options = SessionOptions(**{"lifetime": "open", **options})
        self.session = Session(SessionState(session_id="s", agent="agent", options=options))

    @property
    def now(self):
        return self.clock.moment

    def prompt(self, text="go"):
        self.session.prompt(text, self.now)
        return self

    def run_one(self, given, stop_requested=False):
        """Run one cycle and hand its outcome over."""
        effects = StillEffects(self.agent, self.clock)
        effects.stop_requested = stop_requested
        end = asyncio.run(run_cycle(self.agent, given, self.session.conversation(), effects))
        self.session.finish_cycle(end.outcome, self.now)

    def step(self):
        """Run what is due."""
        while (given := self.session.next_cycle(self.now)) is not None:
            self.run_one(given)
        return self

    def answer(self, response, *numbers):
        open_ones = self.session.open_questions()
        chosen = [open_ones[n] for n in numbers] if numbers else open_ones
        self.session.answer([block(q.id, response) for q in chosen], self.now, "test")
        return self

    def result_texts(self):
        return [
            part["toolResult"]["content"][0]["text"]
            for message in self.session.conversation()
            for part in message["content"]
            if "toolResult" in part
        ]

    def valid(self):
        return history_faults(self.session.conversation()) == []


def driven(*inputs, log=None, hooks=(asking,), **options):
    return Driven(make([] if log is None else log, acts(*inputs), hooks=hooks), **options)


def test_stop_while_waiting_withdraws_the_questions():
    """Stop ends the turn at once: every call gets a result, and a late answer is refused."""
    it = driven(1, 2).prompt().step()
    asked = it.session.open_questions()[0].id
    it.session.stop(it.now)
    assert it.session.result().stop_reason == "cancelled"
    assert it.session.open_questions() == []
    assert it.valid()
    with pytest.raises(AnswerRefused, match="asks nothing") as caught:
        it.session.answer(block(asked, "y"), it.now, "test")
    assert caught.value.code == "not_interrupted"


@pytest.mark.parametrize("how", ["stop", "close"])
def test_results_belong_behind_their_message_whatever_stands_there(how):
    """A message of a hook behind the one that asks does not cost its calls their results when the turn ends."""

    def note(event: BeforeToolCallEvent):
        event.agent.messages.append(user_message("a person is being asked"))

    def prepend(event: BeforeInvocationEvent):
        event.messages = [*(event.messages or []), user_message("by the way")]

    it = driven(1, 2, hooks=[note, asking, prepend]).prompt().step().answer("y", 0).step()
    getattr(it.session, how)(it.now)
    assert it.valid()
    assert it.result_texts()[0] == "1"
    assert user_message("by the way") in it.session.conversation()


def test_stop_keeps_finished_results():
    """A call that ran before the stop keeps its result."""
    it = driven(1, 2).prompt().step().answer("y", 0).step()
    it.session.stop(it.now)
    assert it.result_texts()[0] == "1"
    assert it.valid()


def test_stop_while_running_ends_at_the_cycles_end():
    """A stop during a cycle whose calls then ask withdraws them; nothing goes on."""
    it = driven(1).prompt()
    given = it.session.next_cycle(it.now)
    it.session.stop(it.now)
    it.run_one(given)
    assert it.session.result().stop_reason == "cancelled"
    assert it.session.next_cycle(it.now) is None
    assert it.valid()


def test_a_stop_while_hooks_decide_begins_no_call():
    """What was decided and has not begun does not begin; a stop lets finish only what runs."""
    log = []
    it = driven(1, 2, log=log, hooks=()).prompt()

    def stop_here(event: BeforeToolCallEvent):
        effects = current_effects.get()
        assert isinstance(effects, StillEffects)
        effects.stop_requested = True

    it.agent.add_hook(stop_here, BeforeToolCallEvent)
    given = it.session.next_cycle(it.now)
    it.session.stop(it.now)
    it.run_one(given)
    assert it.session.result().stop_reason == "cancelled"
    assert (log, it.result_texts()) == ([], ["Tool execution cancelled"] * 2)
    assert it.valid()


@pytest.mark.parametrize("retry", [False, True])
def test_a_stop_while_the_model_works_ends_the_turn_without_its_answer(retry):
    """The hook after the call hears of it, and gets no other call."""
    heard = []

    class Stopped(StillEffects):
        async def call_model(self, call, messages):
            self.stop_requested = True

    def after(event: AfterModelCallEvent):
        heard.append(event.stop_response.stop_reason)
        event.retry = retry

    it = driven(1, hooks=[after]).prompt()
    given = it.session.next_cycle(it.now)
    it.session.stop(it.now)
    end = asyncio.run(run_cycle(it.agent, given, [], Stopped(it.agent, it.clock)))
    it.session.finish_cycle(end.outcome, it.now)
    assert (heard, it.session.result().stop_reason) == (["cancelled"], "cancelled")
    assert it.session.next_cycle(it.now) is None
    assert it.valid()


def test_a_stop_does_not_deny_that_a_call_may_have_run():
    """A call whose outcome is unknown is told as unknown, whatever ends its turn."""
    it = driven(1, 2, hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    lost = RecoveredCall(index=0, status="unknown", detail="worker lost")
    cycle = RecoveredCycle(cycle=1, response=response(1, 2), calls=[lost])
    it.session.recover(Recovery(reason="crash", cycles=[cycle]), given, it.now)
    it.run_one(it.session.next_cycle(it.now), stop_requested=True)
    assert it.result_texts() == [
        "This call may have run; its outcome is unknown: worker lost",
        "Tool execution cancelled",
    ]
    assert it.valid()


def test_a_question_that_stays_open_is_noted_once():
    """The audit trail has room for 500 lines; a large batch that is answered piece by piece must not fill it."""
    it = driven(1, 2, 3).prompt().step().answer("y", 0).step().answer("y", 0).step()
    asked = [entry.detail["question"] for entry in it.session.state.audit if entry.event == "question_asked"]
    assert len(asked) == len(set(asked)) == 3


def test_the_session_goes_on_after_a_stop():
    """A stopped turn does not end an open session."""
    it = Driven(make([], lambda scene: "done" if scene.call else acts(1)[0])).prompt().step()
    it.session.stop(it.now)
    it.prompt("again").step()
    assert it.session.result().stop_reason == "end_turn"


def test_close_while_running_leaves_no_unanswerable_question():
    """A session that is closed while a cycle runs does not wait for answers that it would refuse."""
    it = driven(1).prompt()
    given = it.session.next_cycle(it.now)
    it.session.close(it.now)
    it.run_one(given)
    it.step()
    assert it.session.open_questions() == []
    assert it.session.done
    assert it.valid()


def test_expiry_goes_on_with_the_others():
    """Of two questions with one deadline both expire; the turn ends by itself with valid history."""
    log = []
    it = driven(1, 2, log=log, deadline_s=60.0).prompt().step()
    it.clock.forward(seconds=30)
    it.answer("y", 0).step()
    assert it.session.next_deadline() is not None
    it.clock.forward(seconds=31)
    it.session.expire(it.now)
    it.step()
    assert log == [1]
    assert it.session.result().stop_reason == "end_turn"
    assert "expired" in it.result_texts()[1]
    assert it.valid()


@pytest.mark.parametrize("options", [{}, {"deadline_s": None}])
def test_a_question_waits_30_days_by_default(options):
    """Null is the default as well: sessions that began when null was the default carry it."""
    it = driven(1, **options).prompt().step()
    it.clock.forward(days=30, seconds=-1)
    it.session.expire(it.now)
    assert it.session.open_questions()
    it.clock.forward(seconds=2)
    it.session.expire(it.now)
    assert not it.session.open_questions()


def test_resume_all_waits_for_the_whole_batch():
    """With resume="all" nothing runs before every question is answered."""
    log = []
    it = driven(1, 2, log=log, resume="all").prompt().step().answer("y", 0).step()
    assert log == []
    it.answer("y").step()
    assert sorted(log) == [1, 2]


def test_an_answer_during_a_cycle_is_not_lost():
    """An answer that comes while a resumed cycle runs is taken over when it ends."""
    log = []
    it = driven(1, 2, log=log).prompt().step().answer("y", 0)
    given = it.session.next_cycle(it.now)
    it.answer("y")
    it.run_one(given)
    it.step()
    assert sorted(log) == [1, 2]


def response(*inputs):
    uses = [{"toolUse": {"toolUseId": f"t{x}", "name": "act", "input": {"x": x}}} for x in inputs]
    return ModelResponse(stop_reason="tool_use", message={"role": "assistant", "content": uses})


def finished(index, text):
    result = {"toolUseId": f"t{index + 1}", "status": "success", "content": [{"text": text}]}
    return RecoveredCall(index=index, status="finished", outcome=ToolOutcome(kind="result", result=result))


def test_recover_from_nothing_runs_the_prompt_again():
    """A cycle that failed before its model call leaves no trace but the audit's."""
    it = driven(hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    it.session.recover(Recovery(reason="crash"), given, it.now)
    assert it.session.conversation() == []
    assert it.session.next_cycle(it.now).prompt == given.prompt
    assert it.session.state.turn == 1


def test_recover_keeps_finished_results_and_asks_about_the_rest():
    """A finished call is not run again; one that may have run is a person's decision."""
    log = []
    it = driven(1, 2, log=log, hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    unknown = RecoveredCall(index=1, status="unknown", detail="worker lost")
    cycle = RecoveredCycle(cycle=given.cycle, response=response(1, 2), calls=[finished(0, "kept"), unknown])
    it.session.recover(Recovery(reason="crash", cycles=[cycle]), given, it.now)
    it.agent.model = ScriptedModel(lambda scene: "done")
    it.step()
    assert [q.name for q in it.session.open_questions()] == ["unknown-outcome"]
    it.answer("retry").step()
    assert (log, it.result_texts()) == ([2], ["kept", "2"])
    assert it.valid()


@pytest.mark.parametrize(
    ("said", "text"), [("skip", "a person decided not to run it again"), ({"result": "42"}, "42"), (None, "decided")]
)
def test_an_unknown_outcome_can_be_skipped_or_recorded(said, text):
    """A person may say what the call returned, or that it is over; it does not run again."""
    log = []
    it = driven(1, log=log, hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    cycle = RecoveredCycle(cycle=1, response=response(1), calls=[RecoveredCall(index=0, status="unknown")])
    it.session.recover(Recovery(reason="crash", cycles=[cycle]), given, it.now)
    it.agent.model = ScriptedModel(lambda scene: "done")
    it.step().answer(said).step()
    assert log == []
    assert text in it.result_texts()[0]


def test_a_cycle_that_keeps_failing_ends_the_turn():
    """After three failures the turn fails for good; the prompt stays in the conversation and is not run again."""
    it = driven(hooks=()).prompt("a poisoned prompt")
    for _ in range(3):
        given = it.session.next_cycle(it.now)
        it.session.recover(Recovery(reason="crash"), given, it.now)
    assert it.session.result().stop_reason == "failed"
    assert it.session.next_cycle(it.now) is None
    assert message_text(it.session.conversation()[-1]) == "a poisoned prompt"
    assert it.session.state.turn == 1


def test_a_stop_holds_through_a_failed_cycle():
    """A stop that came while the cycle failed ends the turn; the prompt does not run after it."""
    it = driven(hooks=()).prompt()
    given = it.session.next_cycle(it.now)
    it.session.stop(it.now)
    it.session.recover(Recovery(reason="crash"), given, it.now)
    assert it.session.result().stop_reason == "cancelled"
    assert it.session.next_cycle(it.now) is None


def test_a_session_survives_its_own_json():
    """The state that is carried across continue-as-new is all there is."""
    log = []
    it = driven(1, 2, log=log).prompt().step().answer("y", 0)
    it.session = Session(SessionState.model_validate_json(it.session.state.model_dump_json()))
    it.step().answer("n").step()
    assert log == [1]
    assert it.valid()


def a_long_story():
    """An agent whose hooks, tools and model do a bit of everything, driven by what each call's input says."""

    @tool
    def plain(x: int) -> int:
        return x

    @tool
    def fails(x: int) -> int:
        raise ValueError(x)

    @tool(context=True)
    def asks(x: int, tool_context: ToolContext) -> str:
        return str(tool_context.interrupt("in-tool", reason=x))

    def batch(event: BeforeToolsEvent):
        if len(event.message["content"]) == 3:
            event.cancel = event.interrupt("batch") != "y"

    def each(event: BeforeToolCallEvent):
        x = event.tool_use["input"].get("x")
        if x == 1 and event.interrupt("each") != "y":
            event.cancel_tool = ""
        if x == 2:
            event.tool_use["input"]["x"] = len(event.agent.messages)
        if x == 3:
            raise KeyError("hook")

    def after(event: AfterToolCallEvent):
        if event.tool_use["input"].get("x") == 4 and not event.agent.state.get("retried"):
            event.agent.state.set("retried", True)
            event.retry = True

    return [plain, fails, asks], [batch, each, after]


uses = st.tuples(st.sampled_from(["plain", "fails", "asks", "nobody"]), st.integers(0, 5))
turns = st.lists(st.lists(uses, max_size=3), min_size=1, max_size=4)
actions = st.sampled_from(["y", "n", "y one", None, "prompt", "stop", "expire", "crash", "close"])


@settings(max_examples=150)
@given(turns, st.lists(actions, max_size=8), st.booleans())
def test_the_history_is_valid_whenever_nothing_is_pending(script, happenings, same_ids):
    """Whatever calls, answers, stops, expiries and crashes come in whatever order."""
    tools, hooks = a_long_story()

    def said(scene):
        if scene.call >= len(script) or not script[scene.call]:
            return "done"
        return calls(*((name, {"x": x}, *(("id",) if same_ids else ())) for name, x in script[scene.call]))

    it = Driven(Agent(ScriptedModel(said), tools=tools, hooks=hooks), deadline_s=60.0)
    it.prompt().step()
    for happening in happenings:
        with contextlib.suppress(AnswerRefused):  # a refused input changes nothing
            happen(it, happening)
        if it.session.state.pending is None and it.session.state.status != "running":
            assert it.valid()
        it.step()
        if it.session.state.pending is None:
            assert it.valid()
        else:
            assert it.session.open_questions()


def happen(it, what):
    if what == "prompt":
        it.prompt("more")
    elif what == "stop":
        it.session.stop(it.now)
    elif what == "close":
        it.session.close(it.now)
    elif what == "expire":
        it.clock.forward(seconds=61)
        it.session.expire(it.now)
    elif what == "crash":
        it.session.prompt("crash", it.now)
        given = it.session.next_cycle(it.now)
        if given is not None:
            it.session.recover(Recovery(reason="crash"), given, it.now)
    elif what == "y one":
        it.answer("y", 0) if it.session.open_questions() else None
    else:
        it.answer(what)


def test_a_prompt_that_waits_behind_a_question_does_not_make_the_session_look_busy():
    """Two prompts at once, the first one asks: the loop has stopped, and whoever waits for that is told."""
    driven = Driven(make([], acts(1, 2)))
    driven.prompt("first").prompt("second").step()
    assert driven.session.open_questions()
    assert not driven.session.busy
