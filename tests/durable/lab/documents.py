"""The approval examples of the interrupts document, `strands` replaced by `countersign`, models scripted."""

import json
import re
from typing import Any

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from countersign.models import Scene, calls
from countersign.types.tools import ToolContext


@tool
def delete_files(paths: list[str]) -> bool:
    """Delete files."""
    return True


@tool
def inspect_files(paths: list[str]) -> dict[str, Any]:
    """Inspect files."""
    return {"paths": paths}


class ApprovalHook(HookProvider):
    """Asks for each call."""

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


class TrustingHook(ApprovalHook):
    """Asks for each call until it is told to trust."""

    def approve(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] != "delete_files":
            return

        if event.agent.state.get(f"{self.app_name}-approval") == "t":  # (t)rust
            return

        approval = event.interrupt(f"{self.app_name}-approval", reason={"paths": event.tool_use["input"]["paths"]})
        if approval.lower() not in ["y", "t"]:
            event.cancel_tool = "User denied permission to delete files"

        event.agent.state.set(f"{self.app_name}-approval", approval.lower())


class BatchApprovalHook(HookProvider):
    """Asks for the batch."""

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
    """Asks from its body, as a bound method."""

    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    @tool(context=True)
    def delete_files(self, tool_context: ToolContext, paths: list[str]) -> bool:
        """Delete files."""
        approval = tool_context.interrupt(f"{self.app_name}-approval", reason={"paths": paths})
        return approval.lower() == "y"


def script(scene: Scene) -> Any:
    """Inspect and delete each listed path once, twice in a row; then say what came back."""
    paths = re.findall(r"[\w/]+\.txt", scene.prompt)
    rounds = sum(1 for message in scene.turn if message["role"] == "assistant")
    if rounds < 2:
        return calls(("inspect_files", {"paths": paths}), *(("delete_files", {"paths": [path]}) for path in paths))
    return json.dumps([block["toolResult"]["content"] for block in scene.messages[-1]["content"]])


def _agent(hook: HookProvider | None = None, tools: list[Any] | None = None) -> Agent:
    return Agent(
        model=ScriptedModel(script),
        hooks=[hook] if hook else [],
        system_prompt="You delete files older than 5 days",
        tools=tools or [delete_files, inspect_files],
        callback_handler=None,
    )


@durable("per-tool")
def per_tool() -> Agent:
    """The example of BeforeToolCallEvent."""
    return _agent(ApprovalHook("myapp"))


@durable("batch")
def batch() -> Agent:
    """The example of BeforeToolsEvent."""
    return _agent(BatchApprovalHook("myapp"))


@durable("tool-body")
def tool_body() -> Agent:
    """The example of a tool definition."""
    return _agent(tools=[DeleteTool("myapp").delete_files, inspect_files])


@durable("trust")
def trust() -> Agent:
    """The example of session management."""
    return _agent(TrustingHook("myapp"))
