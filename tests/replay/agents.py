"""The agents of the recorded histories. What one does never changes, or its histories would not replay for that reason.

For something new, add an agent here and a scenario to `scenarios.py`.
"""

import asyncio
import time
from typing import Any

from countersign import Agent, ScriptedModel, ToolContext, durable, step, tool
from countersign.hooks import AfterInvocationEvent, BeforeModelCallEvent, BeforeToolCallEvent, BeforeToolsEvent
from countersign.models import Scene, calls
from countersign.vended_interventions.hitl import HumanInTheLoop


@tool
def note(label: str) -> str:
    """Say what was done."""
    return f"did {label}"


@tool
def linger(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "lingered"


@tool(context=True)
def asks_twice(tool_context: ToolContext, label: str) -> str:
    """Ask two questions in the tool's body."""
    first = tool_context.interrupt("first", reason={"label": label})
    return f"{first}, {tool_context.interrupt('second', reason={'first': first})}"


def script(scene: Scene) -> Any:
    """Prompts: words like "note:a", each a call in one message; then a text."""
    if len(scene.turn) > 1:
        return f"{len(scene.turn[-1]['content'])} results"
    uses: list[Any] = []
    for word in scene.prompt.split():
        name, _, value = word.partition(":")
        uses.append((name, {"seconds": float(value)} if name == "linger" else {"label": value}))
    return calls(*uses)


def looping(scene: Scene) -> Any:
    """A prompt like "3": so many cycles of one call, then a text."""
    done = len(scene.results("note"))
    return calls(("note", {"label": str(done)})) if done < int(scene.prompt) else f"looped {done} times"


def ask_for_the_batch(event: BeforeToolsEvent) -> None:
    """One question for all calls of a message."""
    if event.interrupt("batch", reason="all of them") != "y":
        event.cancel = "refused"


def ask_for_each(event: BeforeToolCallEvent) -> None:
    """One question for each call, and a trace in the agent's state."""
    event.agent.state.set("asked", (event.agent.state.get("asked") or 0) + 1)
    if event.interrupt("call", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "refused"


def fail(event: BeforeModelCallEvent) -> None:
    """A hook with a fault."""
    raise RuntimeError("a fault in a hook")


@step
async def permitted(label: str) -> bool:
    """Whether a call may run: all but "b"."""
    return label != "b"


async def check_first(event: BeforeToolCallEvent) -> None:
    """A hook that needs I/O."""
    if not await permitted(event.tool_use["input"]["label"]):
        event.cancel_tool = "not permitted"


TOOLS = [note, linger, asks_twice]


def _agent(**more: Any) -> Agent:
    return Agent(model=ScriptedModel(script), tools=TOOLS, **more)


@durable("free")
def free() -> Agent:
    """Nobody is asked, but by a tool."""
    return _agent()


@durable("batch")
def batch() -> Agent:
    """One question for the batch."""
    return _agent(hooks=[ask_for_the_batch])


@durable("per-call")
def per_call() -> Agent:
    """One question for each call."""
    return _agent(hooks=[ask_for_each])


@durable("stepping")
def stepping() -> Agent:
    """A durable step before each call."""
    return _agent(hooks=[check_first])


@durable("hitl")
def hitl() -> Agent:
    """`HumanInTheLoop` with trust."""
    return _agent(interventions=[HumanInTheLoop(enable_trust=True)])


@durable("faulty")
def faulty() -> Agent:
    """A hook that raises."""
    return _agent(hooks=[fail])


@durable("loop")
def loop() -> Agent:
    """Many cycles without a question."""
    return Agent(model=ScriptedModel(looping), tools=[note])


def once_more(event: AfterInvocationEvent) -> None:
    """Go on once in each turn."""
    if event.agent.messages[-2]["content"][0]["text"] != "once more":
        event.resume = "once more"


@durable("going-on")
def going_on() -> Agent:
    """Repeats what it is told."""
    return Agent(ScriptedModel(lambda scene: scene.prompt), hooks=[once_more])


async def ponder(scene: Scene) -> Any:
    """Take so many seconds for an answer as the prompt says."""
    await asyncio.sleep(float(scene.prompt))
    return "pondered"


@durable("pondering")
def pondering() -> Agent:
    """A slow model."""
    return Agent(ScriptedModel(ponder))
