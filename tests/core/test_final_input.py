"""Policy judges what would run: hooks and handlers see the validated input, defaults filled in."""

import pytest
from tests.core.driving import acts, make, results

from countersign import Agent, ScriptedModel, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider
from countersign.interventions import Deny, InterventionHandler, Proceed, Transform
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop

WIPED = []


@tool
def wipe(path: str, recursive: bool = True) -> str:
    """Wipe a folder."""
    WIPED.append((path, recursive))
    return "wiped"


def run(given, *hooks, **options):
    """An agent that wants to wipe with this input; its result."""
    WIPED.clear()
    agent = Agent(ScriptedModel([calls(("wipe", given)), "done"]), tools=[wipe], hooks=list(hooks), **options)
    return agent, agent("go")


def no_recursion(event: BeforeToolCallEvent) -> None:
    if event.tool_use["input"]["recursive"] is True:
        event.cancel_tool = "not recursively"


class NoRecursion(InterventionHandler):
    name = "no-recursion"

    def before_tool_call(self, event, **kwargs):
        return Deny("not recursively") if event.tool_use["input"]["recursive"] is True else Proceed()


@pytest.mark.parametrize("given", [{"path": "/"}, {"path": "/", "recursive": "yes"}, {"path": "/", "recursive": 1}])
def test_a_default_or_a_converted_value_does_not_get_past_a_hook(given):
    """What the tool would get is what the hook sees."""
    run(given, no_recursion)
    assert WIPED == []


@pytest.mark.parametrize("given", [{"path": "/"}, {"path": "/", "recursive": "yes"}])
def test_nor_past_a_handler(given):
    """The same for interventions."""
    run(given, interventions=[NoRecursion()])
    assert WIPED == []


def test_nor_past_a_batch_hook():
    """The message of a batch event has the inputs that would run; the conversation keeps the model's."""
    seen = []

    def batch(event: BeforeToolsEvent) -> None:
        seen.append(event.message["content"][0]["toolUse"]["input"])

    agent, _ = run({"path": "/"}, batch)
    assert seen == [{"path": "/", "recursive": True}]
    assert agent.messages[1]["content"][0]["toolUse"]["input"] == {"path": "/"}


def test_an_input_that_does_not_fit_is_seen_as_it_is_and_does_not_run():
    """There is nothing else to show; the call is refused whatever the hook says."""
    seen = []

    def look(event: BeforeToolCallEvent) -> None:
        seen.append(event.tool_use["input"])

    agent, _ = run({"path": 3}, look)
    assert (seen, WIPED) == ([{"path": 3}], [])
    assert results(agent)[0][0] == "error"


def sandbox(event):
    """Another tool, and a constraint with it."""
    if event.tool_use["name"] == "run":
        event.tool_use = {**event.tool_use, "name": "boxed", "input": {**event.tool_use["input"], "network": False}}


class Sandboxes(InterventionHandler):
    name = "sandboxes"

    def before_tool_call(self, event, **kwargs):
        return Transform(sandbox)


class SandboxesLate(HookProvider):
    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeToolCallEvent, sandbox, order=1000)


@pytest.mark.parametrize("how", ["by a handler", "by a late hook"])
def test_a_constraint_stays_that_comes_with_another_tool(how):
    """All handlers are heard about the new tool, and about the input that was made for it."""
    ran = []

    @tool
    def run(cmd: str) -> None:
        """Run."""
        ran.append((cmd, True))

    @tool
    def boxed(cmd: str, network: bool = True) -> None:
        """Run in a box."""
        ran.append((cmd, network))

    handlers = [HumanInTheLoop(allowed_tools=["*"]), *([Sandboxes()] if how == "by a handler" else [])]
    hooks = [SandboxesLate()] if how == "by a late hook" else []
    script = ScriptedModel([calls(("run", {"cmd": "x"})), "done"])
    Agent(script, tools=[run, boxed], hooks=hooks, interventions=handlers)("go")
    assert ran == [("x", False)]


@pytest.mark.parametrize("value", [("x",), {1: 2}], ids=str)
def test_a_hook_that_puts_in_what_is_no_json_costs_that_call_alone(value):
    """The other calls of the message run."""
    log = []

    def change(event: BeforeToolCallEvent):
        if event.tool_use["input"] == {"x": 1}:
            event.tool_use["input"] = {"x": value}

    agent = make(log, acts(1, 2), hooks=[change])
    assert (agent("go").stop_reason, log) == ("end_turn", [2])
