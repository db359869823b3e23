"""When a conversation manager is called, and what it may not do."""

import pytest
from tests.core.driving import asking, reply
from tests.core.talking import Narrow, by_turn, fetch, reduced, texts

from countersign import Agent, ScriptedModel
from countersign.agent.conversation_manager import (
    ConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from countersign.agent_client.cli.audit import audit_line
from countersign.agent_core.conversation_managers.cutting import is_prompt
from countersign.agent_core.errors import (
    AgentDefinitionError,
    ContextWindowOverflowException,
    ConversationManagerError,
    EventLoopException,
)
from countersign.agent_core.messages import history_faults, is_guidance, message_text, tool_uses, user_message
from countersign.agent_core.wire import AuditEntry, CycleInput, CycleOutcome
from countersign.hooks import AfterInvocationEvent, AfterModelCallEvent, BeforeModelCallEvent
from countersign.interventions import Guide, InterventionHandler, Proceed
from countersign.models import calls
from countersign.workflows.details import cycle_line


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
    """If the prompt alone is too long the turn fails by name, after few tries, and what was cut in vain is back."""
    model = Narrow(500, by_turn)
    manager = SlidingWindowConversationManager()
    agent = Agent(model, conversation_manager=manager)
    agent("short")
    with pytest.raises(EventLoopException, match="the last exchange alone is too long") as failure:
        agent("p" * 600)
    assert isinstance(failure.value.original_exception, ContextWindowOverflowException)
    assert len(model.seen) == 3
    assert texts(agent) == ["short", "heard short", "p" * 600]
    assert manager.removed_message_count == 0
    assert agent._here()._session.state.audit[-3].event == "conversation_restored"
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


class Own(ConversationManager):
    """One of a user's own: what it does is given as a function."""

    def __init__(self, work):
        super().__init__()
        self._work = work

    def apply_management(self, agent, **kwargs):
        self._work(agent)

    def reduce_context(self, agent, e=None, **kwargs):
        self._work(agent)


class Unmade(Own):
    """One that forgets its base class."""

    def __init__(self):
        pass


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
        (lambda: Agent(ScriptedModel([]), conversation_manager=Unmade()), r"Unmade.__init__ does not call super"),
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


@pytest.mark.parametrize("window", [2, 4])
def test_guidance_does_not_take_the_prompt_s_place(window):
    """A handler that has guided: the running turn keeps its prompt and its last exchange all the same."""

    class Polite(InterventionHandler):
        name = "polite"

        def after_model_call(self, event, **kwargs):
            drafted = "draft" in str(event.stop_response and event.stop_response.message)
            return Guide(feedback="be more polite") if drafted else Proceed()

    seen = []

    def look(event: BeforeModelCallEvent):
        seen.append(list(event.agent.messages))

    fetches = [calls(("fetch", {})) for _ in range(4)]
    agent = Agent(
        ScriptedModel([*fetches[:2], "draft", *fetches[2:], "done"]),
        tools=[fetch],
        hooks=[look],
        interventions=[Polite()],
        conversation_manager=SlidingWindowConversationManager(window_size=window, per_turn=True),
    )
    agent("pay Ada, never Bob")
    assert [message_text(view[0]) for view in seen] == ["pay Ada, never Bob"] * 6
    assert all(any(tool_uses(message) for message in view) for view in seen[1:])
    assert any(is_guidance(message) for message in seen[3])
