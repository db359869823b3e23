"""Scenarios: hooks, handlers, answers, calls and turns thrown together, by numbered seeds.

What would run into a listed difference is left out, so that every one of them must go the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

from tests.differential.handlers import ACTIONS, METHODS, make
from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls

SEEDS = 200
HOOKS = ("ask", "batch", "cancel", "retry", "result", "input", "end turn", "state", "stop model", "retry model")
ASKS = frozenset({"ask", "batch"})


@dataclass(frozen=True)
class Mix:
    """What one seed throws together.

    Attributes:
        count: Calls in each message.
        turns: Prompts.
        hooks: Kinds of hooks, in order.
        handlers: (method, action) of each handler, in order.
        answers: Answers for each time that the loop stops.
    """

    count: int
    turns: int
    hooks: tuple[str, ...]
    handlers: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, ...], ...]


def mix(seed: int) -> Mix:
    """The mix of a seed."""
    chance = Random(seed)
    count, turns = chance.choice((1, 2, 3)), chance.choice((1, 2))
    hooks = [chance.choice(HOOKS) for _ in range(chance.choice((0, 1, 2, 3)))]
    handlers = [chance.choice(list(product(METHODS, ACTIONS))) for _ in range(chance.choice((0, 1, 2)))]
    answers = tuple(tuple(chance.choice("yn") for _ in range(9)) for _ in range(8))
    return Mix(count, turns, *_without_listed_differences(hooks, handlers), answers)


def _without_listed_differences(hooks: list[str], handlers: list[tuple[str, str]]) -> tuple[Any, Any]:
    gone: set[str] = set()
    barred = {("before_invocation", "deny"), ("before_invocation", "guide")}
    if ("before_tool_call", "confirm") in handlers:
        gone |= {"cancel", "ask", "retry"}
        barred |= {("before_tool_call", kind) for kind in ACTIONS if kind != "confirm"}
        first = handlers.index(("before_tool_call", "confirm"))
        handlers = [item for i, item in enumerate(handlers) if i <= first or item[0] != "before_tool_call"]
    if ASKS & set(hooks) - gone:
        gone |= {"cancel", "retry", "input"}
        barred |= {("before_tool_call", kind) for kind in ("deny", "guide", "transform")}
    if "retry" in hooks:
        gone.add("input")
        barred.add(("before_tool_call", "transform"))
    return tuple(item for item in hooks if item not in gone), tuple(item for item in handlers if item not in barred)


def combined(seed: int) -> Scenario:
    """The scenario of a seed."""
    mixed = mix(seed)

    def build(world: World) -> Any:
        turn = [calls(*(("act", {"x": x + 1}) for x in range(mixed.count))), "done"]
        hooks = [_hook(world, kind, f"{kind} {place}") for place, kind in enumerate(mixed.hooks)]
        handlers = [make(world, "ab"[i], kind, method) for i, (method, kind) in enumerate(mixed.handlers)]
        return world.agent([*turn * mixed.turns, *["extra"] * 10], hooks=hooks, handlers=handlers)

    return Scenario(f"seed {seed}", build, mixed.answers, ("go", "again")[: mixed.turns])


def _hook(world: World, kind: str, name: str) -> Any:
    """A provider that does one kind of thing; `name` tells it from another of its kind."""

    def once(event: Any, key: str) -> bool:
        first = event.agent.state.get(key) is None
        event.agent.state.set(key, 1)
        return first

    def asks(event: Any) -> None:
        if event.interrupt(name, reason=event.tool_use["input"]) != "y":
            event.cancel_tool = f"{name} refused"

    def asks_for_batch(event: Any) -> None:
        if event.interrupt(name) != "y":
            event.cancel = f"{name} refused"

    def cancels(event: Any) -> None:
        if event.tool_use["input"].get("x") == 2:
            event.cancel_tool = name

    def grows(event: Any) -> None:
        event.result = {**event.result, "content": [*event.result["content"], {"text": name}]}

    def replaces(event: Any) -> None:
        event.tool_use = {**event.tool_use, "input": {"x": event.tool_use["input"]["x"] + 100}}

    def counts(event: Any) -> None:
        event.agent.state.set(name, (event.agent.state.get(name) or 0) + 1)

    def stops_model(event: Any) -> None:
        if len(event.agent.messages) > 2:
            event.cancel = name

    table: dict[str, tuple[str, Callable[[Any], None]]] = {
        "ask": ("BeforeToolCall", asks),
        "batch": ("BeforeTools", asks_for_batch),
        "cancel": ("BeforeToolCall", cancels),
        "retry": ("AfterToolCall", lambda e: setattr(e, "retry", once(e, f"retried {e.tool_use['toolUseId']}"))),
        "result": ("AfterToolCall", grows),
        "input": ("BeforeToolCall", replaces),
        "end turn": ("AfterTools", lambda e: setattr(e, "end_turn", name)),
        "state": ("AfterModelCall", counts),
        "stop model": ("BeforeModelCall", stops_model),
        "retry model": ("AfterModelCall", lambda e: setattr(e, "retry", e.retry or once(e, "model retried"))),
    }
    event, callback = table[kind]
    return world.hooks(**{event: callback})


ALL = [combined(seed) for seed in range(SEEDS)]
