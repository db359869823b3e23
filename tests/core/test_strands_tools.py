"""Tools of Strands as they are: functions under its `@tool`, and three of `strands-agents-tools`."""

import json
import types

import pytest
import strands
from pydantic import BaseModel, Field
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
    """What was filled in once is taken again as it is."""
    [tool] = Agent(tools=[send]).tool_registry
    filled = tool.canonical_input({"to": "Ada", "amount": "3", **note})
    assert filled == {"to": "Ada", "amount": 3, "note": None, "tags": ["a"]}
    assert tool.canonical_input(filled) == filled


class Options(BaseModel):
    """A default that no JSON schema shows, and one that does."""

    force: bool = True
    targets: list[str] = Field(default_factory=lambda: ["everything"])


def test_no_value_runs_that_was_not_shown():
    """Defaults deep in an input, and those that a schema does not tell, are filled in too."""
    ran = []

    @strands.tool
    def purge(options: Options, limit: str = None) -> str:  # noqa: RUF013 (as people write it)
        """Purge."""
        ran.append([Options.model_validate(options), limit])
        return "purged"

    agent, _ = run([purge], ("purge", {"options": {}}))
    [tool] = agent.tool_registry
    assert tool.canonical_input({"options": {}}) == {
        "options": {"force": True, "targets": ["everything"]},
        "limit": None,
    }
    assert results(agent) == [("success", "purged")]
    assert ran == [[Options(force=True, targets=["everything"]), None]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text", "must be an object"),
        ({"to": "Ada"}, "amount: Field required"),
        ({"to": "Ada", "amount": "many"}, "amount: Input should be a valid integer"),
        ({"to": "Ada", "amount": 3, "note": 5}, "note: Input should be a valid string"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_by_name(given, said):
    """As for a tool of our own."""
    [tool] = Agent(tools=[send]).tool_registry
    with pytest.raises(ToolInputError, match=said):
        tool.canonical_input(given)


SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "mode": {"$ref": "#/$defs/mode"},
        "where": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/place"}]},
        "steps": {"type": "array", "items": {"$ref": "#/$defs/place"}},
        "hint": {"type": "string", "default": None},
        "free": True,
    },
    "required": ["path"],
    "$defs": {
        "mode": {"enum": ["read", "wipe"], "default": "wipe"},
        "place": {
            "type": "object",
            "properties": {"disk": {"type": "string", "default": "sda"}, "deep": {"$ref": "#/$defs/place"}},
        },
    },
}


def module_tool(schema):
    """A module of Strands with a TOOL_SPEC, and what its function was called with."""
    called = []
    module = types.ModuleType("tests.fake_tools.erase")
    spec = {"name": "erase", "description": "Erase.", "inputSchema": {"json": schema}}

    def erase(tool, **kwargs):
        called.append(tool["input"])
        return {"toolUseId": tool["toolUseId"], "status": "success", "content": [{"text": "erased"}]}

    vars(module).update(TOOL_SPEC=spec, erase=erase)
    return module, called


def test_defaults_of_a_schema_are_filled_in_at_every_depth():
    """Behind references, in alternatives and in lists: the person sees what the module's function gets."""
    module, called = module_tool(SCHEMA)
    given = {"path": "/x", "where": {}, "steps": [{}, {"deep": {}}], "hint": None, "free": [1]}
    agent, _ = run([module], ("erase", given))
    wanted = {
        "path": "/x",
        "mode": "wipe",
        "where": {"disk": "sda"},
        "steps": [{"disk": "sda"}, {"disk": "sda", "deep": {"disk": "sda"}}],
        "free": [1],
    }
    [tool] = agent.tool_registry
    assert tool.canonical_input(given) == wanted
    assert tool.canonical_input(wanted) == wanted
    assert called == [wanted]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text", "must be an object"),
        ({}, "'path' is a required property"),
        ({"path": 3}, r"\$\.path: 3 is not of type 'string'"),
        ({"path": "a", "mode": "burn"}, r"\$\.mode"),
        ({"path": "a", "fee": 1}, "no parameter fee"),
    ],
)
def test_an_input_that_does_not_fit_a_schema_is_refused_by_name(given, said):
    """No value is turned into another type where only a schema is known."""
    [tool] = Agent(tools=[module_tool(SCHEMA)[0]]).tool_registry
    with pytest.raises(ToolInputError, match=said):
        tool.canonical_input(given)


def test_a_schema_that_is_none_is_refused_when_the_agent_is_loaded():
    """By the tool's name, and not in the first session."""
    [tool] = Agent(tools=[module_tool({"type": "nonsense"})[0]]).tool_registry
    with pytest.raises(AgentDefinitionError, match="tool erase: its schema is not valid"):
        assert tool.tool_spec


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


@strands.tool
def exhausted(kind: str) -> str:
    """Take the next one of nothing."""
    return next(iter([]))


def test_a_body_that_raises_stop_iteration_is_an_error_and_does_not_hang():
    """In a function and in a module: a future can't hold that exception."""
    module, _ = module_tool({"type": "object", "properties": {}})
    vars(module).update(erase=lambda tool, **kwargs: next(iter([])))
    agent, _ = run([exhausted, module], ("exhausted", {"kind": "a"}), ("erase", {}))
    assert [status for status, _ in results(agent)] == ["error", "error"]


def test_a_parameter_that_a_hand_written_schema_leaves_out_is_shown_all_the_same():
    """Its default would run, and nobody would know."""

    @strands.tool(
        inputSchema={"json": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}
    )
    def transfer(to: str, amount: int = 1_000) -> str:
        """Transfer money."""
        return f"{amount} to {to}"

    agent, _ = run([transfer], ("transfer", {"to": "Ada"}))
    [tool] = agent.tool_registry
    assert tool.canonical_input({"to": "Ada"}) == {"to": "Ada", "amount": 1_000}
    assert results(agent) == [("success", "1000 to Ada")]


async def test_an_async_generator_is_read_to_its_last_value():
    """Strands' streaming tools."""

    @strands.tool
    async def count(to: int):
        """Count."""
        for number in range(to + 1):
            yield number

    agent = Agent(ScriptedModel([calls(("count", {"to": 3})), "done"]), tools=[count])
    await agent.invoke_async("go")
    assert results(agent) == [("success", "3")]
