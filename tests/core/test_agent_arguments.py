"""What an `Agent` can be made of, and what it says of the rest."""

import pytest
from tests.core.driving import asking

from countersign import Agent, ScriptedModel, tool
from countersign.errors import AgentDefinitionError
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def act() -> str:
    """Act."""
    return "ok"


def told(system_prompt):
    """The system prompt as a model gets it."""
    seen = []
    agent = Agent(ScriptedModel(lambda scene: seen.append(scene.system_prompt) or "done"), system_prompt=system_prompt)
    agent("go")
    return seen


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, None),
        ("be brief", "be brief"),
        ([], None),
        ([{"text": "be brief"}], "be brief"),
        ([{"text": "be brief"}, {"text": "be kind"}], "be brief\nbe kind"),
    ],
)
def test_a_system_prompt_may_be_text_blocks(given, text):
    """Each model is told their texts; so are hooks, as in Strands."""
    assert told(given) == [text]
    assert Agent(system_prompt=given).system_prompt == text


@pytest.mark.parametrize("given", [7, {"text": "be brief"}, ["be brief"], [{"cachePoint": {"type": "default"}}]])
def test_any_other_system_prompt_makes_no_agent(given):
    """Not every vendor's model takes more; nor can it be set later."""
    with pytest.raises(AgentDefinitionError, match="system_prompt"):
        Agent(system_prompt=given)
    agent = Agent(system_prompt="be brief")
    with pytest.raises(AgentDefinitionError, match="system_prompt"):
        agent.system_prompt = given
    assert agent.system_prompt == "be brief"


@pytest.mark.parametrize("argument", ["tools", "hooks", "interventions"])
def test_none_is_none_of_them(argument):
    """As in Strands."""
    assert Agent(ScriptedModel(["done"]), **{argument: None})("go").stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("argument", "one"), [("tools", act), ("hooks", asking), ("interventions", HumanInTheLoop()), ("tools", "act")]
)
def test_one_that_is_not_in_a_list_is_refused(argument, one):
    """The error says what to write."""
    with pytest.raises(AgentDefinitionError, match=rf"write {argument}=\[...\]"):
        Agent(**{argument: one})
