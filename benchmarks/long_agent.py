"""The agent of long sessions: each call returns as much as its prompt says, in words that don't compress to nothing."""

import hashlib
from typing import Any

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import Scene, calls


@tool(idempotent=True)
def read(number: int, size: int) -> str:
    """Read a document.

    Args:
        number: Which one.
        size: How long it is, in bytes.
    """
    return f"document {number}: " + hashlib.shake_256(str(number).encode()).hexdigest(size // 2)


@tool
def publish(number: int) -> str:
    """Publish what was read.

    Args:
        number: How many documents.
    """
    return f"published {number}"


def ask_first(event: BeforeToolCallEvent) -> None:
    """Ask before anything is published."""
    if event.tool_use["name"] == "publish" and event.interrupt("publish", reason="May it go out?") != "y":
        event.cancel_tool = "refused"


def _script(scene: Scene) -> Any:
    cycles, size = (int(word) for word in scene.prompt.split())
    if scene.call < cycles:
        return calls(("read", {"number": scene.call, "size": size}))
    return calls(("publish", {"number": cycles})) if scene.call == cycles else "done"


@durable("long")
def long() -> Agent:
    """Reads as many documents as its prompt says, of that size, and asks before it publishes."""
    return Agent(name="long", model=ScriptedModel(_script), tools=[read, publish], hooks=[ask_first])
