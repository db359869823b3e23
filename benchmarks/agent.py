"""The agent that is measured: a model without latency and a tool that does nothing."""

from typing import Any

from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import Scene, calls


@tool
def count(number: int) -> int:
    """Add one.

    Args:
        number: Any number.
    """
    return number + 1


def _script(scene: Scene) -> Any:
    """Call the tool as many times as the prompt says, one call a cycle, then end the turn."""
    return calls(("count", {"number": scene.call})) if scene.call < int(scene.prompt) else "done"


@durable("bench")
def bench() -> Agent:
    """Runs as many cycles as its prompt says, and one more to end the turn."""
    return Agent(name="bench", model=ScriptedModel(_script), tools=[count])
