"""Agents whose dangerous tool runs on workers of its own; a test names their queue in FLEET_QUEUE."""

import os
import time
from datetime import timedelta
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import Scene, calls

QUEUE = os.environ.get("FLEET_QUEUE", "fleet")
WAIT = timedelta(seconds=float(os.environ.get("FLEET_WAIT_S", "600")))


def append(log: str, label: str) -> None:
    """Leave a trace that a test can count."""
    with Path(log).open("a") as file:
        file.write(f"{label}\n")


@tool(queue=QUEUE, queue_timeout=WAIT)
def pay(log: str, seconds: float) -> str:
    """Pay, in this process."""
    append(log, f"paid-by-{os.getpid()}")
    time.sleep(seconds)
    return "paid"


@tool
def look(log: str) -> str:
    """Look, in this process."""
    append(log, f"looked-by-{os.getpid()}")
    return "seen"


def script(scene: Scene):
    """The prompt is "<file> <seconds>": look and pay once, then say what came back."""
    log, seconds = scene.prompt.split()
    if len(scene.turn) > 1:
        return " ".join(b["toolResult"]["content"][0]["text"] for b in scene.messages[-1]["content"])
    return calls(("look", {"log": log}), ("pay", {"log": log, "seconds": float(seconds)}))


@durable("payer")
def payer() -> Agent:
    """Nobody is asked."""
    return Agent(ScriptedModel(script), tools=[look, pay])


@durable("looker")
def looker() -> Agent:
    """Only looks."""
    return Agent(ScriptedModel(lambda scene: "looked"), tools=[look])
