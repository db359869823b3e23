"""docs/semantics.md names tests that exist; and the documents' promises that no other test holds."""

import ast
import asyncio
import json
import logging
import re
from pathlib import Path

import pytest
from tests.core.driving import acts, make, reply
from tests.differential.asking import script
from tests.differential.difference import results
from tests.differential.models import MODELS
from tests.differential.running import Scenario, in_process
from tests.differential.scenarios import FAMILIES

from countersign import InterventionHandler
from countersign.agent_core.messages import Message, as_models_take_them
from countersign.hooks import BeforeToolCallEvent
from countersign.interventions import Deny, Proceed
from countersign.vended_interventions.hitl import HumanInTheLoop

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "semantics.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)", TABLE)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_every_named_test_exists(file, test):
    """A promise is held by a test that is there."""
    tree = ast.parse((ROOT / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_every_promise_names_a_test():
    """No row of the tables goes without."""
    rows = [line for line in TABLE.splitlines() if re.match(r"\| [IHV]\d+ \|", line)]
    assert len(rows) > 70
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_named_family_exists():
    """A row that points to the scenarios side by side says which."""
    assert set(re.findall(r"go_the_same_way\[(\w+)\]", TABLE)) <= FAMILIES.keys()


class Silent(InterventionHandler):
    """Overrides nothing but its name."""

    name = "silent"


@pytest.mark.parametrize("method", ["before_invocation", "before_tool_call", "after_tool_call", "before_model_call",
                                    "after_model_call"])  # fmt: skip
def test_methods_that_are_not_overridden_proceed(method):
    """A handler overrides what matters to it."""
    assert isinstance(getattr(Silent(), method)(None), Proceed)


class Late(InterventionHandler):
    """Denies after the fact."""

    name = "late"

    def after_tool_call(self, event, **kwargs):
        return Deny(reason="too late")


class Broken(InterventionHandler):
    """Fails."""

    name = "broken"

    def __init__(self, policy):
        self.policy = policy

    @property
    def on_error(self):
        return self.policy

    def before_tool_call(self, event, **kwargs):
        raise ConnectionError("service down")


def test_an_action_without_effect_warns(caplog):
    """A Deny after the fact does nothing, and says so in the log."""
    make([], acts(1), hooks=[], interventions=[Late()])("go")
    assert "handler=<late>, event=<after_tool_call> | deny has no effect" in caplog.text


@pytest.mark.parametrize("policy", ["proceed", "deny"])
def test_an_error_that_a_policy_takes_is_logged(caplog, policy):
    """Going on and blocking both leave a line with the handler's name and the error."""
    with caplog.at_level(logging.WARNING):
        make([], acts(1), hooks=[], interventions=[Broken(policy)])("go")
    assert f"handler=<broken>, on_error=<{policy}> | service down" in caplog.text


def test_trust_ends_with_the_agent():
    """A new agent trusts nothing that another was told to trust."""

    def agent():
        return make([], acts(1), hooks=[], interventions=[HumanInTheLoop(enable_trust=True)])

    first = agent()
    assert first(reply(first("go"), "t")).stop_reason == "end_turn"
    assert agent()("go").stop_reason == "interrupt"


def test_trust_is_kept_in_the_agents_state():
    """Where hooks and dashboards can see it."""
    agent = make([], acts(1), hooks=[], interventions=[HumanInTheLoop(enable_trust=True)])
    agent(reply(agent("go"), "t"))
    assert "act" in json.dumps(agent.state.get())


def test_an_interrupt_says_its_name_reason_and_id():
    """And all of it, like the message, is JSON."""
    result = make([], acts(1))("go")
    [interrupt] = result.interrupts
    assert (interrupt.name, interrupt.reason, interrupt.response) == ("ok?", "sure?", None)
    assert json.loads(json.dumps([interrupt.to_dict(), result.message]))[0]["id"] == interrupt.id


def test_an_interrupt_outside_a_running_agent_says_so():
    """There is nobody who could ask a person."""
    agent = make([], acts(1))
    event = BeforeToolCallEvent(agent, selected_tool=None, tool_use={"toolUseId": "t", "name": "act", "input": {}})
    with pytest.raises(RuntimeError, match="not part of a running cycle"):
        event.interrupt("q")


def test_names_are_unique_within_a_tool_only():
    """A hook and a tool's body may use one name for two questions."""

    def body(context, x):
        return context.interrupt("ok?", reason="in the tool")

    agent = _with_body(body)
    first = agent("go")
    second = agent(reply(first, "y"))
    assert [item.reason for item in (*first.interrupts, *second.interrupts)] == ["sure?", "in the tool"]
    assert agent(reply(second, "fine")).stop_reason == "end_turn"


@pytest.mark.parametrize("root", MODELS)
async def test_calls_of_one_message_run_side_by_side(root):
    """Each waits for the other, so one after the other they would never end; on both sides."""
    both = asyncio.Barrier(2)

    def build(world):
        async def meet(context, x):
            async with asyncio.timeout(30):
                await both.wait()
            return x

        return world.agent(script(2), tools=[world.act(meet)])

    trace = await in_process(Scenario("side by side", build), root, MODELS[root])
    assert results(trace) == [("success", "1"), ("success", "2")]


def test_a_model_gets_back_only_what_vendors_take():
    """Blank texts and names that are none are stored as they came, and replaced where they are sent."""
    told: Message = {"role": "user", "content": [{"text": " "}]}
    said: Message = {
        "role": "assistant",
        "content": [{"text": " "}, {"toolUse": {"toolUseId": "t", "name": "a b", "input": {}}}],
    }
    nothing: Message = {"role": "assistant", "content": []}
    assert as_models_take_them([told, said, nothing]) == [
        told,
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "INVALID_TOOL_NAME", "input": {}}}]},
        {"role": "assistant", "content": [{"text": "[blank text]"}]},
    ]


def _with_body(body):
    from countersign import ToolContext, tool

    @tool(context=True)
    def act(tool_context: ToolContext, x: int) -> str:
        """Act."""
        return str(body(tool_context, x))

    return make([], acts(1), tools=[act])
