"""The examples of the interrupts document, with `countersign` in place of `strands`."""

import json
from typing import Any

import pytest
from tests.core.driving import results, valid

from countersign import Agent, ScriptedModel, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from countersign.models import calls
from countersign.types.tools import ToolContext

PATHS = ["a/b/c.txt", "d/e/f.txt"]


@tool
def delete_files(paths: list[str]) -> bool:
    """Delete files."""
    return True


@tool
def inspect_files(paths: list[str]) -> dict[str, Any]:
    """Inspect files."""
    return {"count": len(paths)}


class ApprovalHook(HookProvider):
    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] != "delete_files":
            return
        approval = event.interrupt(f"{self.app_name}-approval", reason={"paths": event.tool_use["input"]["paths"]})
        if approval.lower() != "y":
            event.cancel_tool = "User denied permission to delete files"


class BatchApprovalHook(HookProvider):
    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolsEvent, self.approve)

    def approve(self, event: BeforeToolsEvent) -> None:
        dangerous_tools = [
            content["toolUse"]["name"]
            for content in event.message["content"]
            if "toolUse" in content and content["toolUse"]["name"] == "delete_files"
        ]
        if not dangerous_tools:
            return
        approval = event.interrupt(f"{self.app_name}-batch-approval", reason={"tools": dangerous_tools})
        if approval.lower() != "y":
            event.cancel = "Batch cancelled by user"


class DeleteTool:
    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    @tool(context=True)
    def delete_files(self, tool_context: ToolContext, paths: list[str]) -> bool:
        """Delete files."""
        approval = tool_context.interrupt(f"{self.app_name}-approval", reason={"paths": paths})
        return approval.lower() == "y"


class TrustHook(HookProvider):
    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        if event.agent.state.get(f"{self.app_name}-approval") == "t":  # (t)rust
            return
        approval = event.interrupt(f"{self.app_name}-approval", reason={"paths": event.tool_use["input"]["paths"]})
        if approval.lower() not in ["y", "t"]:
            event.cancel_tool = "User denied permission to delete files"
        event.agent.state.set(f"{self.app_name}-approval", approval.lower())


def until_done(agent, prompt, name, user_input):
    """The loop of the examples; returns the last result and the reasons that were shown."""
    result, shown = agent(prompt), []
    while result.stop_reason == "interrupt":
        responses = []
        for interrupt in result.interrupts:
            assert interrupt.name == name
            shown.append(interrupt.reason)
            responses.append({"interruptResponse": {"interruptId": interrupt.id, "response": user_input}})
        result = agent(responses)
    return result, shown


def both():
    return ScriptedModel(
        [calls(("delete_files", {"paths": PATHS}), ("inspect_files", {"paths": PATHS})), "The files are handled."]
    )


def build(**options):
    return Agent(system_prompt="You delete files older than 5 days", callback_handler=None, **options)


INSPECTED = ("success", '{"count": 2}')


@pytest.mark.parametrize(
    ("said", "outcome"),
    [("y", ("success", "true")), ("N", ("error", "User denied permission to delete files"))],
)
def test_a_hook_on_each_call(said, outcome):
    """The per-call example asks once, shows the paths, and does as the person says."""
    agent = build(model=both(), hooks=[ApprovalHook("myapp")], tools=[delete_files, inspect_files])
    result, shown = until_done(agent, f"paths=<{PATHS}>", "myapp-approval", said)
    assert shown == [{"paths": PATHS}]
    assert results(agent) == [outcome, INSPECTED]
    assert json.dumps(result.message)
    assert valid(agent)


@pytest.mark.parametrize(("said", "texts"), [("y", ["true", "true"]), ("n", ["Batch cancelled by user"] * 2)])
def test_a_hook_on_the_batch(said, texts):
    """The batch example asks one question for two calls, and its answer goes for both."""
    model = ScriptedModel([calls(*(("delete_files", {"paths": [path]}) for path in PATHS)), "done"])
    agent = build(model=model, hooks=[BatchApprovalHook("myapp")], tools=[delete_files])
    _, shown = until_done(agent, "Delete a/b/c.txt and d/e/f.txt", "myapp-batch-approval", said)
    assert shown == [{"tools": ["delete_files", "delete_files"]}]
    assert [text for _, text in results(agent)] == texts


@pytest.mark.parametrize(("said", "text"), [("y", "true"), ("n", "false")])
def test_a_tool_body_that_is_a_bound_method(said, text):
    """The tool example: a method asks from its body and gets the answer when it runs again."""
    agent = build(model=both(), tools=[DeleteTool("myapp").delete_files, inspect_files])
    _, shown = until_done(agent, "go", "myapp-approval", said)
    assert shown == [{"paths": PATHS}]
    assert results(agent) == [("success", text), INSPECTED]


@pytest.mark.parametrize(("said", "asked"), [("t", 1), ("y", 2)])
def test_trust_kept_in_agent_state(said, asked):
    """The session example: "t" is remembered in agent.state, "y" holds for one call."""
    delete = calls(("delete_files", {"paths": PATHS}))
    agent = build(model=ScriptedModel([delete, delete, "done"]), hooks=[TrustHook("myapp")], tools=[delete_files])
    _, shown = until_done(agent, "go", "myapp-approval", said)
    assert len(shown) == asked
    assert results(agent) == [("success", "true")] * 2
