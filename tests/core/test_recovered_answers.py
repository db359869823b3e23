"""What a failed cycle's model had said: hooks and rules count for it as if the cycle had not failed."""

import asyncio

import pytest
from tests.core.driving import StillEffects, acts, asking, make
from tests.core.test_break_sessions import called, crash, said
from tests.core.test_session import Driven, driven

from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.messages import Message, assistant_text, error_result, results_message, user_message
from countersign.agent_core.wire import ModelResponse, RecoveredCycle, Recovery
from countersign.hooks import AfterModelCallEvent, BeforeInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent


class Dies(BaseException):
    """Ends a cycle as the end of its workflow does: nothing more is heard of it."""


class DyingEffects(StillEffects):
    """Effects of a cycle whose workflow dies with its tools: when they have run, or before that."""

    def __init__(self, it, *, late):
        super().__init__(it.agent, it.clock)
        self.late = late

    async def call_tools(self, calls, done):
        """See `Effects`."""
        if self.late:
            await super().call_tools(calls, done)
        else:
            await self._begun(calls, [self._tool(call) for call in calls])
        raise Dies


def die(it, *, late=True):
    """Run the next cycle until it dies; the session recovers from what its effects know."""
    effects, given = DyingEffects(it, late=late), it.session.next_cycle(it.now)
    effects.begin(given.cycle)
    with pytest.raises(Dies):
        asyncio.run(run_cycle(it.agent, given, it.session.conversation(), effects))
    it.session.recover(Recovery(reason="died", cycles=[effects.done]), given, it.now)
    return it


def answered(text="the SECRET", stop_reason="end_turn"):
    """A cycle whose model had answered when it failed."""
    spent = {"inputTokens": 5, "outputTokens": 5, "totalTokens": 10}
    response = ModelResponse(stop_reason=stop_reason, message=assistant_text(text), usage=spent, latency_ms=3)
    return RecoveredCycle(cycle=1, prompt=[user_message("go")], response=response)


def never(scene):
    raise AssertionError("the model was called again")


def without_666(event: AfterModelCallEvent):
    """Takes the call of 666 out of the model's message, and lets no other number be above 10."""
    if event.stop_response is None:
        return
    message = event.stop_response.message
    message["content"] = [block for block in message["content"] if block.get("toolUse", {}).get("input") != {"x": 666}]
    for block in message["content"]:
        if "toolUse" in block:
            block["toolUse"]["input"]["x"] = min(10, block["toolUse"]["input"]["x"])


def hide(event: AfterModelCallEvent):
    """Moderates what the model says."""
    if event.stop_response is not None:
        block = event.stop_response.message["content"][0]
        block["text"] = block["text"].replace("SECRET", "***")


def test_calls_are_those_of_the_message_that_hooks_left():
    """What a hook took out never runs, and a call's result is its own, however the places have shifted."""
    log = []
    it = Driven(make(log, acts(666, 2, 30), hooks=[without_666])).prompt()
    die(it)
    assert sorted(log) == [2, 10]  # side by side
    it.step()
    assert (sorted(log), it.result_texts()) == ([2, 10], ["2", "10"])
    assert it.valid()
    assert it.session.result().stop_reason == "end_turn"


def test_a_doubt_is_about_the_call_that_may_have_run():
    """The question shows that call, and the others are decided as the hook left them."""
    log = []
    it = die(Driven(make(log, acts(666, 2), hooks=[without_666])).prompt(), late=False).step()
    [question] = it.session.open_questions()
    assert (question.name, question.calls[0].input, log) == ("unknown-outcome", {"x": 2}, [])


def test_calls_of_a_message_that_no_model_wrote_do_not_run_twice():
    """A hook may have put one in the model's place: the batch is known by its calls."""
    log = []

    def instead(event: BeforeModelCallEvent):
        event.cancel = len(event.agent.messages) == 1

    def cached(event: AfterModelCallEvent):
        if len(event.agent.messages) == 1:
            event.stop_response.message = {"role": "assistant", "content": [called("a", 1)]}

    it = die(Driven(make(log, lambda scene: "done", hooks=[instead, cached])).prompt()).step()
    assert (log, it.result_texts()) == ([1], ["1"])
    assert it.valid()


@pytest.mark.parametrize("more", [[], [called("b", 666)]])
def test_hooks_hear_an_answer_none_of_whose_calls_was_begun(more):
    """Also after a failure between their first hearing and the first call."""
    log = []
    it = Driven(make(log, lambda scene: "done" if len(scene.turn) > 1 else never(scene), hooks=[without_666])).prompt()
    crash(it, RecoveredCycle(cycle=1, response=said(called("a", 30), *more))).step()
    assert log == [10]
    assert it.valid()


def test_a_call_that_was_cut_off_does_not_run_after_a_recovery():
    """The rule of token limits holds: the turn fails, and says how to go on."""
    log = []
    it = Driven(make(log, never, hooks=())).prompt()
    cut = said(called("a", 1))
    cut.stop_reason = "max_tokens"
    crash(it, RecoveredCycle(cycle=1, response=cut)).step()
    assert (log, it.session.result().error.type) == ([], "MaxTokensReachedException")


def test_a_finished_answer_ends_its_turn():
    """The model is not called again; hooks hear the answer, and its tokens count once, for the limits too."""
    it = Driven(make([], never, hooks=[hide])).prompt()
    it.session.state.options.limits.total_tokens = 10
    result = crash(it, answered()).step().session.result()
    assert (result.stop_reason, result.message) == ("end_turn", assistant_text("the ***"))
    assert (result.usage["totalTokens"], result.latency_ms, result.cycles) == (10, 3, 1)
    assert it.session.state.model_calls == 1
    assert it.session.conversation() == [user_message("go"), assistant_text("the ***")]


def test_an_answer_outlives_a_second_failure():
    """The cycle that was to take it fails as well: the next one has it, and nothing is counted twice."""
    it = Driven(make([], never, hooks=[hide])).prompt()
    result = crash(crash(it, answered())).step().session.result()
    assert (result.message, result.usage["totalTokens"], result.cycles) == (assistant_text("the ***"), 10, 1)


def test_what_a_hook_discards_is_asked_for_again():
    """A retry of a recovered answer calls the model."""

    def again(event: AfterModelCallEvent):
        event.retry = "SECRET" in str(event.stop_response)

    it = crash(Driven(make([], lambda scene: "better", hooks=[again])).prompt(), answered()).step()
    assert it.session.result().message == assistant_text("better")
    assert it.session.state.model_calls == 2


@pytest.mark.parametrize("ended", ["stopped", "failed"])
def test_an_answer_that_hooks_have_not_heard_is_kept_from_the_conversation(ended):
    """The turn ends before they could; what it has cost counts."""
    it = Driven(make([], never, hooks=[hide])).prompt()
    if ended == "stopped":
        crash(it, answered()).session.stop(it.now)
    else:
        crash(crash(crash(it, answered())))
    assert it.session.conversation() == [user_message("go")]
    assert it.session.result().stop_reason == {"stopped": "cancelled", "failed": "failed"}[ended]
    assert it.session.result().usage["totalTokens"] == 10
    it.agent = make([], lambda scene: "new")
    assert it.prompt().step().session.result().message == assistant_text("new")


def test_a_prompt_stays_as_hooks_left_it():
    """A recovery does not bring back what a hook took out of it, or lose what it added."""

    def redact(event: BeforeInvocationEvent):
        if event.messages:
            event.messages = [user_message("be brief"), user_message("my pin is ****")]

    it = die(Driven(make([], acts(1), hooks=[redact])).prompt("my pin is 4711")).step()
    assert "4711" not in str(it.session.conversation())
    assert it.session.conversation()[0] == user_message("be brief")
    assert it.session.result().stop_reason == "end_turn"


@pytest.mark.parametrize("cut", [0, 2])
def test_a_prompt_is_known_whatever_hooks_do_to_the_conversation(cut):
    """Also if one replaces it right before the model call, or cuts what is before it."""

    def rewrite(event: BeforeModelCallEvent):
        messages = event.agent.messages
        last = messages[-1] if cut else user_message("my pin is ****")
        if messages[-1]["content"][0].get("text") == "my pin is 4711":
            messages[:] = [*messages[cut:-1], {**last}]

    it = Driven(make([], ["hello", *acts(1)], hooks=[rewrite])).prompt("hi").step()
    it = die(it.prompt("my pin is 4711"))
    told = "my pin is 4711" if cut else "my pin is ****"
    assert it.session.conversation()[:3] == [user_message("hi"), assistant_text("hello"), user_message(told)]
    assert len(it.session.conversation()) == 4


def test_what_an_agent_begins_with_stays_before_the_prompt():
    """It is no part of the prompt that a recovery keeps, and comes once."""
    own = [user_message("hello"), assistant_text("hi")]
    it = Driven(make([], acts(1), hooks=(), messages=list(own)))
    it.session.state.fresh = True
    die(it.prompt())
    it.agent = make([], lambda scene: "done", hooks=(), messages=list(own))  # each cycle has a new one
    it.step()
    assert it.session.conversation()[:3] == [*own, user_message("go")]
    assert (len(it.session.conversation()), it.valid()) == (6, True)


def test_what_stands_before_the_prompt_is_not_taken_for_it():
    """A turn that ended without an answer leaves its prompt in the conversation, once."""
    it = crash(crash(crash(driven(1, hooks=()).prompt("first"))))
    die(it.prompt("second"))
    assert it.session.conversation()[:2] == [user_message("first"), user_message("second")]
    assert len(it.session.conversation()) == 3


def test_a_done_batch_is_the_one_that_the_model_saw():
    """A hook refused all that another one had left: no call says so, the later model call does."""
    left: Message = {"role": "assistant", "content": [called("b", 2)]}
    refusal = results_message([error_result("b", "no")])
    first = RecoveredCycle(cycle=1, response=said(called("a", 666), called("b", 2)), message=left)
    second = RecoveredCycle(cycle=2, opened_with=[refusal])
    it = crash(Driven(make([], lambda scene: "done")).prompt(), first, second)
    assert it.session.conversation() == [user_message("go"), left, refusal]
    assert it.step().valid()


def note(event: BeforeToolCallEvent):
    event.agent.messages.append(user_message("a person is being asked"))


def test_a_resumed_batch_that_was_done_has_its_results_behind_its_message():
    """The cycle after it had called its model, which saw what stands there; nothing of it comes twice."""
    it = driven(1, hooks=[note, asking]).prompt().step().answer("y")
    asks = it.session.conversation()[1]
    given = it.session.next_cycle(it.now)
    result = error_result(asks["content"][0]["toolUse"]["toolUseId"], "refused")
    seen = [results_message([result]), user_message("a person is being asked")]
    later = RecoveredCycle(cycle=given.cycle + 1, opened_with=seen)
    it.session.recover(Recovery(reason="lost", cycles=[later]), given, it.now)
    assert it.session.conversation()[1:] == [asks, *seen]
    assert it.step().valid()
