"""Agents that talk until their model takes no more. What summaries do is traced in the file named by TRACE."""

import hashlib
import os
import time
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, tool
from countersign.agent.conversation_manager import (
    ConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from countersign.hooks import BeforeToolCallEvent
from countersign.models import Model, calls
from countersign.types.exceptions import ContextWindowOverflowException

CHARS = 2_000
"""What the model takes."""


class Narrow(Model):
    """Hears prompts; "fetch" calls a tool. More than `CHARS` characters are too many."""

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        if sum(len(str(message["content"])) for message in messages) > CHARS:
            raise ContextWindowOverflowException(f"more than {CHARS} characters")
        async for event in ScriptedModel(self.turn).stream(messages, tool_specs, system_prompt, **more):
            yield event

    def turn(self, scene):
        if scene.prompt.startswith("fetch") and not scene.results("fetch"):
            return calls(("fetch", {"what": "news"}))
        return f"heard {scene.prompt[:3]}"


@tool
def fetch(what: str) -> str:
    """Fetch something."""
    return f"{what}: none"


def ask(event: BeforeToolCallEvent):
    """A person must approve."""
    if event.interrupt("fetch?", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "no"


def talker(manager: ConversationManager) -> Agent:
    """An agent with this conversation manager."""
    return Agent(Narrow(), tools=[fetch], hooks=[ask], conversation_manager=manager)


def writes_summaries(scene):
    """A model for summaries that can be counted, and that fails if it is told to."""
    trace = Path(os.environ["TRACE"])
    with trace.open("a") as file:
        file.write("summed\n")
    if trace.with_suffix(".fails").exists():
        raise ValueError("no key")
    return f"They said {scene.prompt.count('User:')} things."


@durable("window")
def window() -> Agent:
    """Keeps two messages."""
    return talker(SlidingWindowConversationManager(window_size=2))


@durable("summed")
def summed() -> Agent:
    """Sums up."""
    return talker(SummarizingConversationManager(0.5, 2, model=ScriptedModel(writes_summaries)))


@tool(idempotent=True)
def document(number: int) -> str:
    """Fetch a document that no compression makes small."""
    return f"document {number}: " + hashlib.shake_256(str(number).encode()).hexdigest(32_000)


@durable("reader")
def reader() -> Agent:
    """Reads 12 large documents in a turn, and keeps five messages at a time."""

    def script(scene):
        return calls(("document", {"number": scene.call})) if scene.call < 12 else "read"

    manager = SlidingWindowConversationManager(window_size=5, per_turn=True)
    return Agent(ScriptedModel(script), tools=[document], conversation_manager=manager)


class Clock(ConversationManager):
    """Cuts by the time of day, which policy code can't know."""

    def apply_management(self, agent, **kwargs):
        del agent.messages[: int(time.time()) % 2]

    def reduce_context(self, agent, e=None, **kwargs):
        raise e


@durable("clock")
def clock() -> Agent:
    """Its manager is policed like a hook."""
    return talker(Clock())
