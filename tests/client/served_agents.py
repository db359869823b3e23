"""Agents for the client's tests: they do what their prompt says, and delete only after asking."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from countersign import Agent, ScriptedModel, durable, tool
from countersign.agent.conversation_manager import SlidingWindowConversationManager
from countersign.agent_core.errors import ModelRequestError
from countersign.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from countersign.models import Scene, calls
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def delete(path: str) -> str:
    """Say that a file was deleted.

    Args:
        path: Its path.
    """
    return f"deleted {path}"


@tool
def hold(until: str) -> str:
    """Run until a file is there.

    Args:
        until: Path of the file.
    """
    while not Path(until).exists():
        time.sleep(0.05)
    return f"held until {until}"


@tool(queue="nobody-serves-this", queue_timeout=timedelta(seconds=20))
def elsewhere() -> str:
    """Wait for a worker that never comes."""
    return "ran"


class Asking(HookProvider):
    """Asks about each call of delete, with words of its own."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Listen before each call."""
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        """Only {"go": true} lets it run."""
        if event.tool_use["name"] != "delete":
            return
        answer = event.interrupt("really", reason="for ever", answers={"approve": {"go": True}, "deny": {"go": False}})
        if not (isinstance(answer, dict) and answer.get("go") is True):
            event.cancel_tool = f"refused: {answer!r}"


def script(scene: Scene) -> Any:
    """ "delete a b" asks for two calls, "hold x" runs until x is there, "elsewhere" waits, "fail" fails.

    Anything else is echoed.
    """
    if any("toolResult" in block for block in scene.messages[-1]["content"]):
        results = [block["toolResult"] for block in scene.messages[-1]["content"]]
        return "; ".join(result["content"][0]["text"] for result in results)
    verb, *words = scene.prompt.split()
    if verb == "delete":
        return calls(*(("delete", {"path": word}) for word in words))
    if verb == "hold":
        return calls(*(("hold", {"until": word}) for word in words))
    if verb == "elsewhere":
        return calls(("elsewhere", {}))
    if verb == "fail":
        return ModelRequestError("the model refused it")
    return f"you said: {scene.prompt}"


@durable("asker")
def asker() -> Agent:
    """Asks through a hook, with answers of its own."""
    return Agent(name="asker", model=ScriptedModel(script), tools=[delete, hold, elsewhere], hooks=[Asking()])


@durable("truster")
def truster() -> Agent:
    """Asks through `HumanInTheLoop`: y, n, t, or words that refuse."""
    handler = HumanInTheLoop(enable_trust=True)
    return Agent(name="truster", model=ScriptedModel(script), tools=[delete], interventions=[handler])


@durable("forgetter")
def forgetter() -> Agent:
    """Keeps no more of its conversation than the last turn."""
    window = SlidingWindowConversationManager(window_size=2)
    return Agent(name="forgetter", model=ScriptedModel(script), conversation_manager=window)
