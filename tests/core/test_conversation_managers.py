"""What conversation managers cut, and what they never may."""

import copy
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strands.agent import conversation_manager as strands
from tests.core.driving import asking, reply

from countersign import Agent, ScriptedModel, tool
from countersign.agent.conversation_manager import (
    ConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from countersign.agent_client.cli.audit import audit_line
from countersign.agent_core.conversation_managers.cutting import is_prompt, is_summary, latest, oldest_part, task
from countersign.agent_core.errors import (
    AgentDefinitionError,
    ContextWindowOverflowException,
    ConversationManagerError,
    EventLoopException,
    ModelThrottledException,
)
from countersign.agent_core.messages import assistant_text, history_faults, message_text, tool_uses, user_message
from countersign.agent_core.wire import AuditEntry, CycleInput, CycleOutcome
from countersign.hooks import AfterInvocationEvent, AfterModelCallEvent, BeforeModelCallEvent
from countersign.models import Model, calls
from countersign.workflows.details import cycle_line


@tool
def fetch(size: int = 3) -> str:
    """Fetch so many characters."""
    return "x" * size


def exchange(number, results=1):
    """An assistant's message with calls, and their results."""
    ids = [f"t{number}-{index}" for index in range(results)]
    uses = [{"toolUse": {"toolUseId": i, "name": "fetch", "input": {}}} for i in ids]
    found = [{"toolResult": {"toolUseId": i, "status": "success", "content": [{"text": "x"}]}} for i in ids]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": found}]


@st.composite
def conversations(draw, prompts=2):
    """Valid conversations: turns of a prompt, exchanges and an answer; the last one in any state."""
    messages, number = [], 0
    turns = draw(st.integers(1, 6))
    for turn in range(turns):
        messages += [user_message(f"prompt {turn}") for _ in range(draw(st.integers(1, prompts)))]
        for _ in range(draw(st.integers(0, 5))):
            messages += exchange(number, draw(st.integers(1, 3)))
            number += 1
        if turn < turns - 1 or draw(st.booleans()):
            messages.append(assistant_text(f"answer {turn}"))
    if draw(st.booleans()) and not tool_uses(messages[-1]) and messages[-1]["role"] == "user":
        messages.append(exchange(number)[0])
    return messages


@given(conversations(), st.integers(0, 12), st.integers(0, 5))
def test_a_cut_conversation_is_valid(messages, most, pinned):
    """Whatever is cut: calls keep their results, a prompt comes first, and the running turn its task and last step."""
    kept = latest(messages, most, pinned)
    whole = iter(messages)
    assert all(any(message is found for found in whole) for message in kept)  # a subsequence of the very messages
    faults = history_faults(kept)
    assert len(faults) == len(history_faults(messages))  # an open batch is a fault before and after
    if kept and pinned == 0:
        assert is_prompt(kept[0])
    if pinned:
        assert kept[: min(pinned, len(messages))] == messages[:pinned]
    ended = messages[-1]["role"] == "assistant" and not tool_uses(messages[-1])
    if most or not ended:
        assert any(message is messages[task(messages)[1] - 1] for message in kept)
        assert kept[-1] is messages[-1]


@given(conversations(), st.integers(1, 12))
def test_a_window_is_exceeded_only_by_the_last_exchange(messages, most):
    """What is kept fits the window, unless the running turn's prompt and last exchange alone don't."""
    kept = latest(messages, most)
    end = task(messages)[1]
    last = next(
        place for place in range(len(messages) - 1, -1, -1) if messages[place]["role"] == "assistant" or place < end
    )
    floor = 1 + (len(messages) - max(last, end))
    assert len(kept) <= max(most, floor)


@given(conversations(prompts=1), st.integers(1, 12))
def test_a_window_is_cut_where_strands_cuts(messages, most):
    """If a turn begins within the window, the same messages stay as in strands-agents."""
    assume(any(is_prompt(message) for message in messages[-most:]))
    there = SimpleNamespace(messages=copy.deepcopy(messages))
    strands.SlidingWindowConversationManager(most).apply_management(there)
    assert latest(messages, most) == there.messages


@given(conversations(), st.floats(0.1, 0.8), st.integers(0, 8), st.integers(0, 4))
def test_what_is_summed_up_leaves_a_valid_conversation(messages, share, keep, pinned):
    """A summary takes the place of whole exchanges, and never of the last turn's prompt or the latest messages."""
    start, places = oldest_part(messages, share, keep, pinned)
    rest = [message for place, message in enumerate(messages) if place not in places]
    left = [*rest[:start], user_message("summary"), *rest[start:]]
    assert len(history_faults(left)) == len(history_faults(messages))
    assert task(messages)[1] - 1 not in places
    assert all(place < len(messages) - 1 and place >= min(pinned, len(messages)) for place in places)


class Narrow(Model):
    """A model that takes so many characters; it does what the script of a ScriptedModel says."""

    def __init__(self, chars, script):
        self.chars, self.inner, self.seen = chars, ScriptedModel(script), []

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        self.seen.append(copy.deepcopy(list(messages)))
        if len(str(messages)) > self.chars:
            raise ContextWindowOverflowException(f"more than {self.chars} characters")
        async for event in self.inner.stream(messages, tool_specs, system_prompt, **more):
            yield event


def by_turn(scene):
    """Answers a prompt with its own words; "fetch N" calls the tool once."""
    words = scene.prompt.split()
    if words[:1] == ["fetch"] and not scene.results("fetch"):
        return calls(("fetch", {"size": int(words[1])}))
    return f"heard {scene.prompt[:20]}"


def reduced(agent):
    """Details of the audit lines about reductions."""
    audit = agent._here()._session.state.audit
    return [entry.detail for entry in audit if entry.event == "conversation_reduced"]


def texts(agent):
    return [message_text(message) for message in agent.messages]


def test_the_window_slides_when_a_turn_has_ended():
    """The latest messages stay, beginning with a prompt, and the audit trail says what went."""
    agent = Agent(ScriptedModel(by_turn), conversation_manager=SlidingWindowConversationManager(window_size=3))
    for number in range(3):
        agent(f"p{number}")
    assert texts(agent) == ["p2", "heard p2"]
    assert reduced(agent)[0] == {
        "manager": "SlidingWindowConversationManager", "why": "turn_ended", "removed": 2, "left": 2,
    }  # fmt: skip
    assert agent.conversation_manager.removed_message_count == 4


def test_without_a_manager_nothing_is_cut():
    """By default the conversation stays whole."""
    agent = Agent(ScriptedModel(by_turn))
    for number in range(50):
        agent(f"p{number}")
    assert len(agent.messages) == 100 and reduced(agent) == []


def test_without_a_manager_an_overflow_says_the_way_out():
    """The turn fails by the model's error, with the next step, and the conversation is whole."""
    agent = Agent(Narrow(300, by_turn))
    with pytest.raises(EventLoopException, match="give it a conversation_manager") as failure:
        agent("p" * 400)
    assert isinstance(failure.value.original_exception, ContextWindowOverflowException)
    assert len(agent.messages) == 1


def test_hooks_at_the_end_see_the_cut_conversation():
    """As in Strands, the window slides before AfterInvocationEvent."""
    seen = []

    def look(event: AfterInvocationEvent):
        seen.append(len(event.agent.messages))

    manager = SlidingWindowConversationManager(window_size=2)
    agent = Agent(ScriptedModel(by_turn), hooks=[look], conversation_manager=manager)
    agent("a")
    agent("b")
    assert seen == [2, 2]


@pytest.mark.parametrize(("per_turn", "most"), [(True, [1, 3, 5, 5, 5, 5]), (3, [1, 3, 5, 7, 9, 5])])
def test_per_turn_cuts_before_model_calls(per_turn, most):
    """A long turn stays within the window: its prompt and its latest exchanges are what the model sees."""
    seen = []

    def look(event: BeforeModelCallEvent):
        seen.append(len(event.agent.messages))

    manager = SlidingWindowConversationManager(window_size=5, per_turn=per_turn)
    script = [*(calls(("fetch", {})) for _ in range(5)), "done"]
    agent = Agent(ScriptedModel(script), tools=[fetch], hooks=[look], conversation_manager=manager)
    agent("go")
    assert seen == most
    assert message_text(agent.messages[0]) == "go" and history_faults(agent.messages) == []
    assert {detail["why"] for detail in reduced(agent)} >= {"before_model_call"}


def test_an_open_question_keeps_the_conversation_whole():
    """While a person is asked nothing is cut; once the turn has ended it is."""
    manager = SlidingWindowConversationManager(window_size=2, per_turn=True)
    script = ["one", "two", calls(("fetch", {})), "done"]
    agent = Agent(ScriptedModel(script), tools=[fetch], hooks=[asking], conversation_manager=manager)
    agent("a")
    agent("b")
    result = agent("c")
    assert result.stop_reason == "interrupt"
    assert tool_uses(agent.messages[-1]) and message_text(agent.messages[0]) == "c"
    before = list(agent.messages)
    agent(reply(result, "y"))
    assert agent.messages[0] == before[0]
    assert history_faults(agent.messages) == [] and texts(agent)[-1] == "done"


def test_an_overflow_shortens_old_results_first():
    """The older half of the long results loses its middle, with a note; the latest stays whole."""
    agent = Agent(Narrow(9_000, by_turn), tools=[fetch], conversation_manager=SlidingWindowConversationManager())
    for size in (3_000, 3_001, 3_002):
        agent(f"fetch {size}")
    results = [
        block["toolResult"]["content"][0]["text"]
        for m in agent.messages
        for block in m["content"]
        if "toolResult" in block
    ]
    assert "2,600 characters are left out" in results[0] and len(results[0]) < 500
    assert len(results[2]) == 3_002
    assert sum(detail["shortened_results"] for detail in reduced(agent)) == 2
    assert len(agent.messages) == 12  # no message went


def test_an_overflow_cuts_messages_if_no_result_is_long():
    """The oldest quarter goes, as often as it takes, and the model is called again."""
    model = Narrow(2_000, by_turn)
    manager = SlidingWindowConversationManager(should_truncate_results=False)
    agent = Agent(model, tools=[fetch], conversation_manager=manager)
    for number in range(10):
        agent(f"p{number} {'.' * 300}")
    assert texts(agent)[-1].startswith("heard p9")
    assert is_prompt(agent.messages[0]) and history_faults(agent.messages) == []
    assert {detail["why"] for detail in reduced(agent)} == {"overflow"}
    assert manager.removed_message_count == 20 - len(agent.messages)


def test_what_cant_be_reduced_fails_by_name():
    """If the prompt alone is too long the turn fails with ContextWindowOverflowException, after few tries."""
    model = Narrow(500, by_turn)
    agent = Agent(model, conversation_manager=SlidingWindowConversationManager())
    agent("short")
    with pytest.raises(EventLoopException, match="the last exchange alone is too long") as failure:
        agent("p" * 600)
    assert isinstance(failure.value.original_exception, ContextWindowOverflowException)
    assert len(model.seen) == 3
    assert agent("short again").stop_reason == "end_turn"


def test_hooks_hear_of_each_overflow():
    """AfterModelCallEvent carries the model's error of each try, as in Strands."""
    seen = []

    def look(event: AfterModelCallEvent):
        seen.append(type(event.exception).__name__)

    agent = Agent(Narrow(700, by_turn), hooks=[look], conversation_manager=SlidingWindowConversationManager())
    agent("p" * 300)
    agent("q" * 300)
    assert seen == ["NoneType", "ContextWindowOverflowException", "NoneType"]


def summarising(summary, **options):
    """A manager whose summaries come from a script, and a list of what its model was shown."""
    shown = []

    def script(scene):
        shown.append(scene)
        return summary

    return SummarizingConversationManager(0.5, 2, model=ScriptedModel(script), **options), shown


def long_talk(agent, turns=6):
    for number in range(turns):
        result = agent(f"p{number} {'.' * 300}")
    return result


def test_a_summary_takes_the_place_of_the_oldest():
    """The summary stands first, the model is called again, and a later summary takes over the one before."""
    manager, shown = summarising("S: they said p0")
    agent = Agent(Narrow(2_000, by_turn), conversation_manager=manager)
    long_talk(agent, 9)
    assert is_summary(agent.messages[0]) and "S: they said p0" in texts(agent)[0]
    assert sum(map(is_summary, agent.messages)) == 1
    assert "User: p0" in shown[0].prompt and "Earlier summary: " in shown[1].prompt
    assert shown[0].tools == ()
    assert history_faults(agent.messages) == []
    gone = 18 - (len(agent.messages) - 1)
    assert manager.removed_message_count == gone and f"Summary of {gone} earlier messages" in texts(agent)[0]
    assert reduced(agent)[0]["summarised"] is True and reduced(agent)[0]["removed"] >= 2


def test_the_tokens_of_a_summary_count():
    """They are in the usage of the turn, and in its audit line."""
    manager, _ = summarising("a b c d e")
    agent = Agent(Narrow(1_500, lambda scene: "one"), conversation_manager=manager)
    plain = long_talk(agent, 3).metrics.accumulated_usage["outputTokens"]
    usage = long_talk(agent, 1).metrics.accumulated_usage
    spent = reduced(agent)[0]["usage"]
    assert len(reduced(agent)) == 1 and usage["outputTokens"] == plain + spent["outputTokens"]


def test_a_summary_that_uses_up_the_limit_ends_the_turn():
    """The model is not called again once the summary's tokens have reached the limit."""
    manager, _ = summarising("word " * 60)
    model = Narrow(1_500, by_turn)
    agent = Agent(model, conversation_manager=manager)
    long_talk(agent, 3)
    asked = len(model.seen)
    result = agent("p3" + "." * 300, limits={"output_tokens": 5})
    assert result.stop_reason == "limit_output_tokens"
    assert len(model.seen) == asked + 1 and is_summary(agent.messages[0])


@pytest.mark.parametrize("failing", [ModelThrottledException("busy"), calls(("fetch", {}))], ids=["error", "no-text"])
def test_without_a_summary_nothing_is_lost(failing):
    """A summary that fails fails the turn by name; the conversation is as it was, and the next turn may succeed."""
    manager, _ = summarising(failing)
    agent = Agent(Narrow(1_500, by_turn), conversation_manager=manager)
    with pytest.raises(EventLoopException, match="there is no summary") as failure:
        long_talk(agent)
    assert isinstance(failure.value.original_exception, ConversationManagerError)
    assert texts(agent)[0].startswith("p0 ") and reduced(agent) == []


def test_a_failed_summary_may_cut_instead():
    """With on_error="cut" the oldest messages go without one, and the audit line says so."""
    manager, _ = summarising(ModelThrottledException("busy"), on_error="cut")
    agent = Agent(Narrow(1_500, by_turn), conversation_manager=manager)
    assert long_talk(agent).stop_reason == "end_turn"
    assert "busy" in reduced(agent)[0]["summary_failed"] and reduced(agent)[0]["summarised"] is False
    assert is_summary(agent.messages[0]) and "there is no summary of them" in texts(agent)[0]
    assert history_faults(agent.messages) == []


def test_a_summary_longer_than_its_part_is_not_taken():
    """It would not help; with nothing else to shorten the turn fails, and the conversation is whole."""
    manager, _ = summarising("blah " * 1_000)
    agent = Agent(Narrow(1_500, by_turn), conversation_manager=manager)
    with pytest.raises(EventLoopException, match="nothing is left to sum up"):
        long_talk(agent)
    assert texts(agent)[0].startswith("p0 ")


def test_the_prompt_of_a_long_turn_is_not_summed_up():
    """What the user wants now stays word for word, after the summary."""
    manager, shown = summarising("S")
    script = [*(calls(("fetch", {"size": 200})) for _ in range(8)), "done"]
    agent = Agent(Narrow(2_500, script), tools=[fetch], conversation_manager=manager)
    agent("the task")
    assert is_summary(agent.messages[0]) and texts(agent)[1] == "the task"
    assert all("the task" not in scene.prompt for scene in shown)


def test_an_agent_of_its_own_writes_the_summary():
    """Strands' summarization_agent: its model and its system prompt; tools are refused."""
    seen = []

    def script(scene):
        seen.append(scene.system_prompt)
        return "S"

    writer = Agent(ScriptedModel(script), system_prompt="be brief")
    manager = SummarizingConversationManager(0.5, 2, summarization_agent=writer)
    agent = Agent(Narrow(1_500, by_turn), conversation_manager=manager)
    long_talk(agent)
    assert set(seen) == {"be brief"} and is_summary(agent.messages[0])
    with pytest.raises(AgentDefinitionError, match="summarization_agent has tools"):
        SummarizingConversationManager(summarization_agent=Agent(ScriptedModel([]), tools=[fetch]))


class Own(ConversationManager):
    """One of a user's own: what it does is given as a function."""

    def __init__(self, work):
        super().__init__()
        self._work = work

    def apply_management(self, agent, **kwargs):
        self._work(agent)

    def reduce_context(self, agent, e=None, **kwargs):
        self._work(agent)


def _orphan(agent):
    agent.messages = [m for m in agent.messages if not tool_uses(m)]


def _scribble(agent):
    agent.messages.append("no message")


def _report(agent):
    agent.conversation_manager.report = {"usage": {"inputTokens": "many"}}


def _raise(agent):
    agent.messages.clear()
    raise ZeroDivisionError("oops")


@pytest.mark.parametrize(
    ("work", "cause"),
    [
        (_orphan, ConversationManagerError),
        (_scribble, ConversationManagerError),
        (_report, ConversationManagerError),
        (_raise, ZeroDivisionError),
    ],
)
def test_an_invalid_conversation_is_put_back(work, cause):
    """A manager that fails or parts calls from results fails the turn, by name, and changes nothing."""
    ends = []

    def end(event: AfterInvocationEvent):
        ends.append(event.result.stop_reason)

    agent = Agent(ScriptedModel(by_turn), tools=[fetch], hooks=[end], conversation_manager=Own(work))
    with pytest.raises(EventLoopException) as failure:
        agent("fetch 3")
    assert type(failure.value.original_exception) is cause
    assert len(agent.messages) == 4 and history_faults(agent.messages) == [] and ends == ["failed"]


def test_a_manager_may_change_messages_in_place():
    """As those written for Strands do; the session takes over what was changed."""

    def work(agent):
        agent.messages[0]["content"] = [{"text": "rewritten"}]

    agent = Agent(ScriptedModel(by_turn), conversation_manager=Own(work))
    agent("hello")
    assert message_text(agent._here()._session.conversation()[0]) == "rewritten"


def test_a_manager_that_makes_nothing_smaller_is_stopped():
    """One call without effect ends the tries; one that never suffices is ended too."""
    agent = Agent(Narrow(300, by_turn), conversation_manager=Own(lambda agent: None))
    with pytest.raises(EventLoopException, match="has not made the conversation smaller"):
        agent("p" * 400)

    def one_character(agent):
        agent.messages[0] = user_message(message_text(agent.messages[0])[:-1])

    agent = Agent(Narrow(300, by_turn), conversation_manager=Own(one_character))
    with pytest.raises(EventLoopException, match="smaller 30 times for one model call"):
        agent("p" * 400)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SlidingWindowConversationManager(-1), "window_size"),
        (lambda: SlidingWindowConversationManager(per_turn=0), "per_turn"),
        (lambda: SlidingWindowConversationManager(pin_first=-1), "pin_first"),
        (lambda: SlidingWindowConversationManager(proactive_compression=True), "proactive_compression"),
        (lambda: SummarizingConversationManager(on_error="ignore"), "on_error"),
        (lambda: Agent(ScriptedModel([]), conversation_manager="sliding"), "conversation_manager"),
    ],
)
def test_arguments_that_cant_be_used_are_refused(make, words):
    """By name, when the agent is built."""
    with pytest.raises(AgentDefinitionError, match=words):
        make()


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ({"removed": 2}, "conversation reduced: 2 messages cut, 7 left (M, overflow)"),
        ({"removed": 1, "summarised": True}, "conversation reduced: 1 message summed up, 7 left (M, overflow)"),
        (
            {"removed": 0, "shortened_results": 3},
            "conversation reduced: long results shortened: 3, 7 left (M, overflow)",
        ),
        (
            {"removed": 2, "summarised": False, "summary_failed": "E: no"},
            "conversation reduced: 2 messages cut, 7 left (no summary: E: no) (M, overflow)",
        ),
    ],
)
def test_an_audit_line_says_what_went(detail, words):
    """How many messages went, how many are left, who cut them and why."""
    entry = AuditEntry(
        at="", event="conversation_reduced", detail={"manager": "M", "why": "overflow", "left": 7, **detail}
    )
    assert audit_line(entry).endswith(words)


def test_a_cycle_in_the_temporal_ui_says_what_is_left():
    """The line of a cycle tells that the conversation was reduced."""
    line = AuditEntry(at="", event="conversation_reduced", detail={"left": 7})
    outcome = CycleOutcome(stop_reason="end_turn", last_cycle=3, audit=[line])
    text = cycle_line(CycleInput(agent="a", session_id="s", cycle=3), outcome)
    assert text.endswith("conversation reduced to 7 messages")
