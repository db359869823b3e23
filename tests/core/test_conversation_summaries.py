"""Summaries in place of the oldest messages, and what happens if there is none."""

import pytest
from tests.core.talking import Narrow, by_turn, fetch, reduced, texts

from countersign import Agent, ScriptedModel
from countersign.agent.conversation_manager import SummarizingConversationManager
from countersign.agent_core.conversation_managers.cutting import is_summary
from countersign.agent_core.errors import (
    AgentDefinitionError,
    ConversationManagerError,
    EventLoopException,
    ModelThrottledException,
)
from countersign.agent_core.messages import history_faults
from countersign.models import calls


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


def test_a_part_that_is_too_long_for_the_summariser_is_shortened():
    """Its texts, inputs and results lose more of their middles, until the summariser takes them."""
    writer = Narrow(2_000, lambda scene: "S")
    agent = Agent(Narrow(9_000, by_turn), conversation_manager=SummarizingConversationManager(0.5, 2, model=writer))
    for number in range(6):
        agent(f"p{number}{'.' * 1_500}")
    assert is_summary(agent.messages[0]) and "\nS" in texts(agent)[0]
    assert [len(seen[0]["content"][0]["text"]) > 2_000 for seen in writer.seen[:3]] == [True, True, False]


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
