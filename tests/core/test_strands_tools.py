"""Tools of Strands as they are: functions under its `@tool`, and three of `strands-agents-tools`."""

import json

import pytest
import strands
from strands_tools import calculator, environment, file_read
from tests.core.driving import reply

from countersign import Agent, ScriptedModel
from countersign.errors import AgentDefinitionError, ToolInputError
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls


@strands.tool
def send(to: str, amount: int, note: str | None = None, tags: list[str] = ["a"]) -> str:  # noqa: B006 (as a user may)
    """Send money.

    Args:
        to: Who gets it.
        amount: How much.
    """
    return f"sent {amount} to {to} ({note}, {tags})"


@strands.tool
def fails(kind: str) -> str:
    """Fail in one of two ways."""
    raise ValueError("bad value") if kind == "value" else RuntimeError("broken")


@strands.tool(context=True)
def asks(what: str, tool_context: strands.ToolContext) -> str:
    """Ask from the body, with Strands' own context."""
    answer = tool_context.interrupt("sure", reason={"what": what})
    return f"{what}: {answer!r} for {tool_context.agent.name}, {tool_context.invocation_state['user']}"


class Shop:
    """Tools as methods."""

    def __init__(self, name):
        self.name = name

    @strands.tool
    def open_shop(self, hour: int) -> str:
        """Open."""
        return f"{self.name} opens at {hour}"


def run(tools, *uses, hooks=()):
    """An agent that makes these calls, and its first result."""
    agent = Agent(ScriptedModel([calls(*uses), "done"]), tools=tools, hooks=list(hooks))
    return agent, agent("go", user="ada")


def results(agent):
    """Status and text of every tool result."""
    blocks = [part["toolResult"] for message in agent.messages for part in message["content"] if "toolResult" in part]
    return [(block["status"], "".join(part.get("text", "") for part in block["content"])) for block in blocks]


def test_a_function_of_strands_runs_with_its_defaults():
    """As it would there."""
    agent, _ = run([send], ("send", {"to": "Ada", "amount": 3}))
    assert results(agent) == [("success", "sent 3 to Ada (None, ['a'])")]


@pytest.mark.parametrize("note", [{}, {"note": None}])
def test_defaults_are_filled_in_before_a_person_signs(note):
    """A null that means "left out" is left out; and what was filled in once is taken again as it is."""
    [tool] = Agent(tools=[send]).tool_registry
    filled = tool.canonical_input({"to": "Ada", "amount": 3, **note})
    assert filled == {"to": "Ada", "amount": 3, "tags": ["a"]}
    assert tool.canonical_input(filled) == filled


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text", "must be an object"),
        ({"to": "Ada"}, "'amount' is a required property"),
        ({"to": "Ada", "amount": "3"}, r"\$\.amount: '3' is not of type 'integer'"),
        ({"to": "Ada", "amount": 3, "fee": 1}, "no parameter fee"),
        ({"to": "Ada", "amount": 3, "note": 5}, r"\$\.note"),
    ],
)
def test_an_input_that_does_not_fit_the_schema_is_refused_by_name(given, said):
    """No value is turned into another type: the person signs what will run."""
    [tool] = Agent(tools=[send]).tool_registry
    with pytest.raises(ToolInputError, match=said):
        tool.canonical_input(given)


def test_what_a_function_raises_is_an_error_result_with_strands_words():
    """For the model, and for AfterToolCallEvent."""
    agent, _ = run([fails], ("fails", {"kind": "value"}), ("fails", {"kind": "other"}))
    assert results(agent) == [("error", "Error: bad value"), ("error", "Error: RuntimeError - broken")]


@pytest.mark.parametrize("answer", ["y", False, None, 0, {"a": 1}])
def test_a_body_may_ask_with_strands_own_context(answer):
    """Any JSON value is an answer, null too."""
    agent, result = run([asks], ("asks", {"what": "wipe"}))
    [question] = result.interrupts
    assert (question.name, question.reason) == ("sure", {"what": "wipe"})
    agent(reply(result, answer))
    assert results(agent) == [("success", f"wipe: {answer!r} for agent, ada")]


def test_a_method_stays_bound_to_its_object():
    """Two shops, two tools' states."""
    agent, _ = run([Shop("north").open_shop], ("open_shop", {"hour": 8}))
    assert results(agent) == [("success", "north opens at 8")]


def test_three_tools_of_strands_agents_tools_run(tmp_path, monkeypatch):
    """A decorated one, and two modules with a TOOL_SPEC."""
    monkeypatch.setenv("COUNTERSIGN_TEST", "at the lake")
    file = tmp_path / "note.txt"
    file.write_text("remember the milk")
    agent, _ = run(
        [calculator, environment, file_read],
        ("calculator", {"expression": "6 * 7"}),
        ("environment", {"action": "get", "name": "COUNTERSIGN_TEST"}),
        ("file_read", {"path": str(file), "mode": "view"}),
    )
    (first, product), (second, place), (third, text) = results(agent)
    assert (first, second, third) == ("success", "success", "success")
    assert "42" in product
    assert "at the lake" in place
    assert "remember the milk" in text


def test_a_question_can_be_asked_about_a_tool_of_strands():
    """Hooks do not see whose tool it is."""

    def ask(event: BeforeToolCallEvent) -> None:
        if event.interrupt("ok?") != "y":
            event.cancel_tool = "no"

    agent, result = run([calculator], ("calculator", {"expression": "1 + 1"}), hooks=[ask])
    agent(reply(result, "y"))
    assert "2" in results(agent)[0][1]


@pytest.mark.parametrize("module", [json, pytest])
def test_a_module_without_tools_is_refused(module):
    """By name, when the agent is made."""
    with pytest.raises(AgentDefinitionError, match="is not a tool"):
        Agent(tools=[module])
