"""A janitor that really lists, inspects and deletes files, and never deletes before a person says so.

Three agents with one set of tools and three ways to ask:

    janitor        a hook asks about each call of delete_files
    janitor-batch  a hook asks once about all calls of one message
    janitor-hitl   `HumanInTheLoop` asks, and can be told to trust

Without further ado the model is scripted: it follows a few lines of code, reads its prompt and the
tools' real results, and says that it is scripted. COUNTERSIGN_MODEL in the worker's environment puts a
real one in its place, for instance COUNTERSIGN_MODEL=openai:gpt-5 with OPENAI_API_KEY.
"""

import os
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from countersign.models import Scene, calls
from countersign.vended_interventions.hitl import HumanInTheLoop

SECONDS_PER_DAY = 86_400


@tool
def list_files(folder: str) -> list[dict[str, Any]]:
    """List the files of a folder.

    Args:
        folder: Path of the folder.
    """
    now = time.time()
    return [
        {"path": str(path), "age_days": round((now - path.stat().st_mtime) / SECONDS_PER_DAY, 1)}
        for path in sorted(Path(folder).iterdir())
        if path.is_file()
    ]


@tool
def inspect_files(paths: list[str]) -> list[dict[str, Any]]:
    """Say how large files are and how they begin.

    Args:
        paths: Paths of the files.
    """
    return [
        {"path": path, "bytes": Path(path).stat().st_size, "begins": Path(path).read_text(errors="replace")[:60]}
        for path in paths
    ]


@tool(timeout=timedelta(minutes=5))
def delete_files(paths: list[str]) -> dict[str, Any]:
    """Delete files. There is no way back.

    Args:
        paths: Paths of the files.
    """
    deleted, missing = [], []
    for path in paths:
        try:
            Path(path).unlink()
            deleted.append(path)
        except FileNotFoundError:
            missing.append(path)
    return {"deleted": deleted, "missing": missing}


class ApprovalHook(HookProvider):
    """Asks about each call of delete_files."""

    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Listen before each call."""
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        """Ask, and cancel the call unless the answer is "y"."""
        if event.tool_use["name"] != "delete_files":
            return
        answer = event.interrupt(f"{self.app_name}-approval", reason={"paths": event.tool_use["input"]["paths"]})
        if str(answer).strip().lower() not in ("y", "yes"):
            event.cancel_tool = f"User denied permission to delete files: {answer}"


class BatchApprovalHook(HookProvider):
    """Asks once about all calls of delete_files in one message."""

    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Listen before each batch."""
        registry.add_callback(BeforeToolsEvent, self.approve)

    def approve(self, event: BeforeToolsEvent) -> None:
        """Ask, and cancel the batch unless the answer is "y"."""
        uses = [block["toolUse"] for block in event.message["content"] if "toolUse" in block]
        dangerous = [use["name"] for use in uses if use["name"] == "delete_files"]
        if not dangerous:
            return
        answer = event.interrupt(f"{self.app_name}-batch-approval", reason={"tools": dangerous})
        if str(answer).strip().lower() not in ("y", "yes"):
            event.cancel = f"Batch cancelled by user: {answer}"


def _script(scene: Scene) -> Any:
    """What the scripted model does next, from its prompt and what the tools really returned."""
    listings, refusals = scene.results("list_files"), scene.results("delete_files", "error")
    if scene.results("list_files", "error"):
        return f"I am scripted, and I could not list the folder: {scene.results('list_files', 'error')[0]}"
    if not listings:
        folder = re.search(r"(/\S+)", scene.prompt)
        if folder is None:
            return "I am scripted, and I need the path of a folder, like: Delete files older than 5 days in /tmp/x"
        return calls(("list_files", {"folder": folder[1].rstrip(".,")}), text="Let me look at the folder.")
    days = re.search(r"(\d+(?:\.\d+)?)\s*days?", scene.prompt)
    limit = float(days[1]) if days else 5.0
    old = [item["path"] for item in listings[-1] if item["age_days"] > limit]
    if not old:
        return f"I am scripted, and I found nothing older than {limit:g} days."
    if not scene.results("inspect_files"):
        return calls(("inspect_files", {"paths": old}), text=f"{len(old)} files are older than {limit:g} days.")
    if refusals:
        return f"I am scripted, and I deleted nothing: {refusals[-1]}"
    deletions = scene.results("delete_files")
    if not deletions:
        return calls(("delete_files", {"paths": old}), text="These can go.")
    return f"I am scripted, and I deleted {len(deletions[-1]['deleted'])} files: {', '.join(deletions[-1]['deleted'])}"


def model() -> Any:
    """The model: the one that COUNTERSIGN_MODEL names, else the script. Called where the model is used."""
    return os.environ.get("COUNTERSIGN_MODEL") or ScriptedModel(_script)


TOOLS = [list_files, inspect_files, delete_files]
SYSTEM_PROMPT = "You delete files older than 5 days"


@durable("janitor")
def janitor() -> Agent:
    """Asks about each call of delete_files."""
    return Agent(
        name="janitor", model=model, system_prompt=SYSTEM_PROMPT, tools=TOOLS,
        hooks=[ApprovalHook("janitor")],
    )  # fmt: skip


@durable("janitor-batch")
def janitor_batch() -> Agent:
    """Asks once about all calls of one message."""
    return Agent(
        name="janitor-batch", model=model, system_prompt=SYSTEM_PROMPT, tools=TOOLS,
        hooks=[BatchApprovalHook("janitor")],
    )  # fmt: skip


@durable("janitor-hitl")
def janitor_hitl() -> Agent:
    """Asks through `HumanInTheLoop`, except for the tools that only look."""
    return Agent(
        name="janitor-hitl", model=model, system_prompt=SYSTEM_PROMPT, tools=TOOLS,
        interventions=[HumanInTheLoop(allowed_tools=["list_files", "inspect_files"], enable_trust=True)],
    )  # fmt: skip
