"""Agents that do what their prompt says: `effects=<file>` names the file that tools append to."""

import re
import time
from pathlib import Path
from typing import Any

from countersign import Agent, ScriptedModel, ToolContext, durable, tool
from countersign.hooks import BeforeModelCallEvent, BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from countersign.models import Scene, calls
from countersign.vended_interventions.hitl import HumanInTheLoop


def append(log: str, label: str) -> None:
    """Leave a trace that a test can count."""
    with Path(log).open("a") as file:
        file.write(f"{label}\n")


@tool
def effect(log: str, label: str) -> str:
    """Do something that can be counted."""
    append(log, label)
    return f"did {label}"


@tool(context=True)
def asks_twice(tool_context: ToolContext, log: str, label: str) -> str:
    """Ask two questions before doing anything."""
    first = tool_context.interrupt("first", reason={"label": label})
    second = tool_context.interrupt("second", reason={"label": label, "first": first})
    append(log, f"{label}-{first}-{second}")
    return f"did {label}"


def _hold(log: str, label: str) -> None:
    append(log, f"{label}-began")
    while not Path(f"{log}.go").exists():
        time.sleep(0.02)
    append(log, f"{label}-ended")


@tool
def held(log: str, label: str) -> str:
    """Run until the test lets go (`Lab.let_go`)."""
    _hold(log, label)
    return f"did {label}"


@tool(idempotent=True, context=True)
def held_idempotent(tool_context: ToolContext, log: str, label: str) -> str:
    """Run until the test lets go; may be repeated."""
    _hold(log, label)
    append(log, f"key-{tool_context.idempotency_key}")
    return f"did {label}"


@tool
def big(size: int) -> str:
    """Return a lot."""
    return "x" * size


@tool
def swallow(text: str) -> int:
    """Take a lot."""
    return len(text)


class Batch(HookProvider):
    """One question for the batch."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolsEvent, self.ask)

    def ask(self, event: BeforeToolsEvent) -> None:
        answer = event.interrupt("batch", reason={"calls": len(event.message["content"])})
        if answer != "y":
            event.cancel = f"batch refused: {answer}"


class PerCall(HookProvider):
    """One question for each call, and a count of the calls it decided."""

    def __init__(self) -> None:
        self.decided = 0

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        self.decided += 1
        answer = event.interrupt("call", reason={"label": event.tool_use["input"].get("label")})
        event.agent.state.set("decided", self.decided)
        if answer != "y":
            event.cancel_tool = f"call refused: {answer}"


def script(scene: Scene) -> Any:
    """Prompts: "effects=<file> tool:label …" in one message; then a closing text."""
    log = re.search(r"effects=(\S+)", scene.prompt)
    if len(scene.turn) > 1:
        texts = [b["toolResult"]["content"][0]["text"] for b in scene.messages[-1]["content"] if "toolResult" in b]
        return "results: " + "; ".join(text[:80] for text in texts)
    uses: list[Any] = []
    for name, label in re.findall(r"(\w+):([\w-]+)", scene.prompt):
        if name == "big":
            uses.append((name, {"size": int(label)}))
        elif name == "swallow":
            uses.append((name, {"text": "x" * int(label)}))
        else:
            uses.append((name, {"log": log[1] if log else "", "label": label}))
    return calls(*uses) if uses else f"you said: {scene.prompt}"


TOOLS = [effect, asks_twice, held, held_idempotent, big, swallow]


def _agent(**more: Any) -> Agent:
    return Agent(model=ScriptedModel(script), tools=TOOLS, **more)


@durable("free")
def free() -> Agent:
    """Nobody is asked."""
    return _agent()


@durable("batch")
def batch() -> Agent:
    """One question for the batch."""
    return _agent(hooks=[Batch()])


@durable("per-call")
def per_call() -> Agent:
    """One question for each call."""
    return _agent(hooks=[PerCall()])


@durable("hitl")
def hitl() -> Agent:
    """`HumanInTheLoop` with trust."""
    return _agent(interventions=[HumanInTheLoop(enable_trust=True)])


class Loops(HookProvider):
    """Counts model calls."""

    def __init__(self) -> None:
        self.models = 0

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeModelCallEvent, self.count)

    def count(self, event: BeforeModelCallEvent) -> None:
        self.models += 1
        event.agent.state.set("models", self.models)


def looping(scene: Scene) -> Any:
    """ "loop:<n>": n cycles of one call, then a text."""
    count = int(re.search(r"loop:(\d+)", scene.prompt)[1])  # type: ignore[index]  # it is there
    done = len(scene.results("add"))
    return calls(("add", {"number": done})) if done < count else f"looped {done} times"


@tool
def add(number: int) -> int:
    """Add one."""
    return number + 1


@durable("loop")
def loop() -> Agent:
    """Many cycles without a question."""
    return Agent(model=ScriptedModel(looping), tools=[add], hooks=[Loops()])
