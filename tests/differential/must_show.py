"""What must hold of an agent that asks, case by case; each in this process and on a worker.

A case is a scenario and what its trace must show. The agents keep their notes in `agent.state`, so that a worker's can
be read, too: the tool `act` counts its runs of each call there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.differential.difference import results
from tests.differential.running import Reply, Scenario, Trace
from tests.differential.sdk import World

from countersign import ScriptedModel

RAN = "ran "


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        scenario: What happens.
        shows: What is looked at in its trace.
        expected: What that must be.
    """

    scenario: Scenario
    shows: Callable[[Trace], Any]
    expected: Any


def use(x: Any, use_id: str = "", name: str = "act") -> dict[str, Any]:
    """A call in a model's message, with the input `x`."""
    return {"toolUse": {"toolUseId": use_id or f"use-{x}", "name": name, "input": {"x": x}}}


def says(*messages: Any) -> Any:
    """A script: these messages in each turn, one after the other, then "done"."""

    def script(scene: Any) -> Any:
        place = sum(message["role"] == "assistant" for message in scene.turn)
        return messages[place] if place < len(messages) else "done"

    return script


def agent(world: World, script: Any, **options: Any) -> Any:
    """An agent whose tools count their runs; `act` and `look` do the same."""
    tools = options.pop("tools", None) or [counted(world), counted(world, "look")]
    return world.agent(script, tools=tools, observed=False, **options)


def counted(world: World, name: str = "act", body: Callable[[Any, int], Any] | None = None) -> Any:
    """A tool that counts the runs of each call in `agent.state`."""

    def run(context: Any, x: int) -> Any:
        key = f"{RAN}{context.tool_use['toolUseId']} {name}({x})"
        context.agent.state.set(key, (context.agent.state.get(key) or 0) + 1)
        return x if body is None else body(context, x)

    return world.act(run, name)


def asks(world: World, name: str = "ok?", only: Sequence[int] | None = None, reason: Any = None) -> Any:
    """A hook that asks about each call, or about those with these inputs, and takes "y"."""

    def hook(event: Any) -> None:
        if only is None or event.tool_use["input"].get("x") in only:
            answer = event.interrupt(name, reason=reason)
            if answer != "y":
                event.cancel_tool = f"refused: {answer!r}"

    return world.hooks(BeforeToolCall=hook)


def up(event: Any, key: str) -> int:
    """Count in `agent.state`."""
    count = (event.agent.state.get(key) or 0) + 1
    event.agent.state.set(key, count)
    return count


def ran(trace: Trace) -> dict[str, int]:
    """How often each call ran, by its id, tool and input."""
    return {key.removeprefix(RAN): count for key, count in trace.state.items() if key.startswith(RAN)}


def outcome(trace: Trace) -> Any:
    """Stops, what ran how often, and how each call ended."""
    return trace.stops, ran(trace), [status for status, _ in results(trace)]


def messages_only(trace: Trace) -> Any:
    """Why the loop stopped (errors by type), and each result. For turns that fail: they show no state."""
    return [stop.split(":")[0] for stop in trace.stops], results(trace)


def case(
    name: str,
    build: Callable[[World], Any],
    replies: Sequence[Reply],
    shows: Callable[[Trace], Any],
    expected: Any,
    prompts: Sequence[Any] = ("go",),
    **call: Any,
) -> Case:
    """A case in one line."""
    return Case(Scenario(name, build, replies, prompts, call=call, raw=True), shows, expected)


def world() -> World:
    """Where cases build their agents."""
    return World("countersign", ScriptedModel, None)
