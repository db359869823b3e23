"""One agent with every kind of wait and effect. Effects are rows of a SQLite file, each in its own transaction."""

import asyncio
import os
import re
import sqlite3
import time
from contextlib import closing
from typing import Any

from tests.crash.points import hit

from countersign import Agent, ScriptedModel, ToolContext, durable, step, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider, HookRegistry
from countersign.interventions import Deny, InterventionHandler, Proceed
from countersign.models import Scene, calls
from countersign.vended_interventions.hitl import HumanInTheLoop, LLMClassifierConfig

FILE = "CRASH_EFFECTS"
"""Environment variable with the SQLite file."""


def commit(label: str) -> str:
    """The effect: one row. Returns what the tool says."""
    hit("body began", label)
    with closing(sqlite3.connect(os.environ[FILE], timeout=30, isolation_level=None)) as file:
        file.execute("INSERT INTO effects (label) VALUES (?)", (label,))
    hit("body committed", label)
    return f"did {label}"


@tool
def pay(label: str) -> str:
    """Pay; a hook asks about each call."""
    return commit(label)


@tool(context=True)
def choose(tool_context: ToolContext, label: str) -> str:
    """Ask in the body, then act."""
    colour = tool_context.interrupt("colour", reason={"label": label})
    return f"{commit(label)} in {colour}"


@tool
def fail(label: str) -> str:
    """Act, then raise."""
    commit(label)
    raise ValueError(f"{label} went wrong")


@tool
def note(label: str, seconds: float = 0.0) -> str:
    """Act in a thread, perhaps slowly."""
    time.sleep(seconds)
    return commit(label)


@tool
async def ship(label: str, seconds: float = 0.0) -> str:
    """Act on the event loop, perhaps slowly."""
    await asyncio.sleep(seconds)
    return commit(label)


@tool
def delete(label: str) -> str:
    """Act, if the judge or a person allows it."""
    return commit(label)


class Batch(HookProvider):
    """One question for a large batch."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolsEvent, self.ask)

    def ask(self, event: BeforeToolsEvent) -> None:
        uses = [block for block in event.message["content"] if "toolUse" in block]
        if len(uses) > 3 and event.interrupt("batch", reason={"label": "batch"}) != "y":
            event.cancel = "batch refused"


class Payments(HookProvider):
    """One question for each payment; it counts those that it has decided."""

    def __init__(self) -> None:
        self.decided = 0

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] != "pay":
            return
        self.decided += 1
        answer = event.interrupt("payment", reason={"label": event.tool_use["input"]["label"]})
        event.agent.state.set("decided", self.decided)
        if answer != "y":
            event.cancel_tool = f"refused: {answer}"


@step
async def may(label: str) -> bool:
    """I/O of a handler."""
    hit("step began", label)
    return label != "forbidden"


class Permissions(InterventionHandler):
    """Looks each shipment up in a durable step."""

    name = "permissions"

    async def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Proceed | Deny:
        if event.tool_use["name"] != "ship":
            return Proceed()
        return Proceed() if await may(event.tool_use["input"]["label"]) else Deny(reason="forbidden")


def judge(scene: Scene) -> Any:
    """The classifier's model: what is called risky needs a person."""
    return calls(("verdict", {"requires_approval": "risky" in scene.prompt, "reason": "by its name"}))


def script(scene: Scene) -> Any:
    """A prompt is rounds of calls, "tool:label[:seconds] … / tool:label …"; then a closing text."""
    rounds = scene.prompt.split(" / ")
    done = sum(message["role"] == "assistant" for message in scene.turn)
    if done >= len(rounds):
        return f"{done} rounds done"
    found = re.findall(r"(\w+):([\w-]+)(?::([\d.]+))?", rounds[done])
    uses = [(name, {"label": label, **({"seconds": float(s)} if s else {})}) for name, label, s in found]
    return calls(*uses) if uses else f"you said: {scene.prompt[:100]}"


@durable("reference")
def reference() -> Agent:
    """Every kind of wait: for the batch, for a call, in a body, on a judge's word."""
    others = ["pay", "choose", "fail", "note", "ship"]
    gate = HumanInTheLoop(allowed_tools=others, classifier=LLMClassifierConfig(model=ScriptedModel(judge)))
    return Agent(
        model=ScriptedModel(script),
        tools=[pay, choose, fail, note, ship, delete],
        hooks=[Batch(), Payments()],
        interventions=[Permissions(), gate],
    )
