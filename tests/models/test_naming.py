"""What an agent may be given as its model: names, functions, models; and what is said of the rest."""

import subprocess
import sys

import pytest

from countersign import Agent, ScriptedModel
from countersign.activities.model import ModelActivities
from countersign.activities.providers import model_from
from countersign.activities.providers.strands_model import StrandsModel
from countersign.activities.segments import Segments
from countersign.agent_core.deployment import AgentDeployment
from countersign.errors import AgentDefinitionError
from countersign.models import Model

SCRIPTED = ScriptedModel(["hello"])


def test_a_function_makes_the_model_once_for_each_agent():
    """The factory runs for every cycle; what it names is made where it is used, and kept."""
    made = []

    def make():
        made.append(1)
        return SCRIPTED

    agent = Agent(model=make)
    assert made == []
    agent("a")
    assert made == [1]


def test_a_function_may_return_a_name(monkeypatch):
    """So an environment variable can choose the model, read outside of workflows."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert vars(model_from(lambda: "openai:some-model"))["name"] == "some-model"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt-5", "names no provider.*openai:gpt-5"),
        ("opnai:gpt-5", "no provider 'opnai'.*openai, "),
        ("openai:", "has no model id"),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_next_step(name, said):
    """Named, with what would do."""
    with pytest.raises(AgentDefinitionError, match=said):
        model_from(name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai:x", "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key"),
        ("anthropic:x", "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        ("gemini:x", "set GEMINI_API_KEY or GOOGLE_API_KEY"),
    ],
)
def test_a_missing_key_is_said_before_any_session_needs_it(name, said, monkeypatch):
    """The worker refuses to start, with the variable's name."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(AgentDefinitionError, match=said):
        model_from(name)


def test_a_worker_names_the_agent_whose_model_cannot_be_made():
    """One bad agent among many is found at once."""
    agent = Agent(name="payer", model="opnai:x")
    with pytest.raises(AgentDefinitionError, match=r"agent 'payer': .*opnai"):
        ModelActivities({"payer": AgentDeployment("payer", "module", lambda: agent, agent)}, Segments())


def test_a_missing_package_is_said_with_the_extra_that_brings_it(monkeypatch):
    """`pip install` with the right name."""
    monkeypatch.setitem(sys.modules, "strands.models.mistral", None)
    monkeypatch.setenv("MISTRAL_API_KEY", "x")
    with pytest.raises(AgentDefinitionError, match=r"pip install '/path/to/the/clone\[mistral\]'"):
        model_from("mistral:large")


@pytest.mark.parametrize(
    "name", ["us.anthropic.claude-sonnet-4-v1:0", "arn:aws:bedrock:eu-west-1:1:inference-profile/x", "bedrock:some-id"]
)
def test_an_id_of_bedrock_needs_no_provider(name, monkeypatch):
    """As in Strands."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    model = model_from(name)
    assert isinstance(model, StrandsModel)
    assert model.name == name.removeprefix("bedrock:")


@pytest.mark.parametrize("source", [3, "", {"model": "x"}])
def test_what_can_not_be_a_model_is_refused_by_the_agent(source):
    """At once, and not in the first session."""
    with pytest.raises(AgentDefinitionError, match="model must be"):
        Agent(model=source)


def test_a_function_that_raises_is_named():
    """With its error."""

    def broken():
        raise KeyError("MODEL")

    with pytest.raises(AgentDefinitionError, match=r"broken.*KeyError"):
        model_from(broken)


def test_functions_that_go_round_in_a_circle_end():
    """No endless loop at worker start."""

    def circle():
        return circle

    with pytest.raises(AgentDefinitionError, match="is not a model"):
        model_from(circle)


def test_our_own_models_pass_as_they_are():
    """`Model` is the port; nothing is put around it."""
    assert model_from(SCRIPTED) is SCRIPTED
    assert isinstance(SCRIPTED, Model)


def test_no_vendor_is_imported_before_a_model_is_made():
    """Importing the package and defining an agent stays cheap."""
    code = (
        "import sys; from countersign import Agent; Agent(model='openai:x'); import countersign.client; "
        "print([m for m in ('strands', 'openai', 'boto3', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
