"""Our agent that is measured: a model without latency, a tool that does nothing, a tool that a person approves."""

from typing import Any

from benchmarks.marks import mark
from benchmarks.work import next_call
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from countersign.models import Scene, calls


@tool
async def count(number: int) -> int:
    """Add one.

    Args:
        number: Any number.
    """
    return number + 1


@tool
async def guarded(number: int) -> int:
    """Add one, once a person has approved.

    Args:
        number: Any number.
    """
    mark()
    return number + 1


class AskFirst(HookProvider):
    """Asks before each call of `guarded`."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """See `HookProvider`."""
        registry.add_callback(BeforeToolCallEvent, self._ask)

    def _ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "guarded" and event.interrupt("approval", reason="May it run?") != "y":
            event.cancel_tool = "refused"


def _script(scene: Scene) -> Any:
    name = next_call(scene.prompt, scene.call)
    return "done" if name is None else calls((name, {"number": scene.call}))


@durable("bench")
def bench() -> Agent:
    """Does what its prompt says (`work`), and one more cycle to end the turn."""
    return Agent(name="bench", model=ScriptedModel(_script), tools=[count, guarded], hooks=[AskFirst()])
