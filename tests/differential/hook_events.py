"""Scenarios: what hooks may write on an event, and in which order they are called."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from tests.differential.hooks import ONE, TWO, hooked
from tests.differential.running import Scenario
from tests.differential.sdk import EVENTS, World

from countersign.models import calls

FIELDS = ("agent", "invocation_state", "message", "messages", "tool_use", "selected_tool", "result", "retry", "cancel",
          "cancel_tool", "cancel_message", "exception", "stop_response", "end_turn", "resume", "duration",
          "something_else")  # fmt: skip


def writes() -> Iterator[Scenario]:
    """Each field of each event: whether a hook may set it, and what it is told if not."""

    def trying(event: Any, attribute: str, world: World) -> None:
        if getattr(event, attribute, None) is None and attribute != "something_else":
            return
        try:
            setattr(event, attribute, getattr(event, attribute, 1))
        except AttributeError as error:
            world.note(event, str(error))

    for name, attribute in product(EVENTS, FIELDS):
        event = name.removesuffix("Event")
        table = {event: lambda world, e, a=attribute: trying(e, a, world)}
        yield hooked(f"{event}.{attribute} is set", ONE, table)


def orders() -> Iterator[Scenario]:
    """Three providers on each event: in order before, in reverse after; and explicit places."""
    for name in EVENTS:
        event = name.removesuffix("Event")
        tables = [{event: lambda world, e, n=n: world.note(e, f"hook {n}")} for n in (1, 2, 3)]
        yield hooked(f"three hooks on {event}", ONE, *tables)

        def build(world: World, event: str = event) -> Any:
            providers = [
                world.hooks(order=order, **{event: lambda e, order=order: world.note(e, f"order {order}")})
                for order in (5, -5, 0, 5, 95, -95)
            ]
            return world.agent(ONE, hooks=providers)

        yield Scenario(f"places of hooks on {event}", build)
    yield hooked("messages are announced", TWO, {"MessageAdded": _announce})
    yield Scenario("handlers stand after hooks before, and before hooks after", _handlers_and_hooks)


def _announce(world: World, event: Any) -> None:
    world.note(event, f"added {event.message['role']}")


def _handlers_and_hooks(world: World) -> Any:
    def hear(event: Any) -> Any:
        world.note(event, f"handler at {type(event).__name__}")
        return world.sdk.Proceed()

    methods = ("before_invocation", "before_model_call", "after_model_call", "before_tool_call", "after_tool_call")
    return world.agent(ONE, handlers=[world.handler("h", **dict.fromkeys(methods, hear))])


def views() -> Iterator[Scenario]:
    """What each event shows, for calls that run, are cancelled, unknown or renamed."""
    shows: dict[str, Callable[[Any], Any]] = {
        "BeforeInvocation": lambda e: (e.messages, e.cancel),
        "BeforeTools": lambda e: (e.message["role"], e.message["content"], e.cancel),
        "BeforeToolCall": lambda e: (e.tool_use, _name(e), e.cancel_tool, e.invocation_state["request_state"]),
        "AfterToolCall": lambda e: (e.tool_use, _name(e), e.cancel_message, str(e.exception), e.retry),
        "AfterTools": lambda e: (e.message["role"], e.message["content"], e.end_turn),
        "AfterInvocation": lambda e: (e.result.stop_reason, e.result.message["content"], str(e.result), e.resume),
        "MessageAdded": lambda e: (e.message["role"], e.message["content"], len(e.agent.messages)),
    }
    table = {event: _noting(show) for event, show in shows.items()}
    unknown = [calls(("nobody", {})), "done"]
    for name, turns, first in (
        ("one call", ONE, {}), ("two calls", TWO, {}), ("an unknown call", unknown, {}),
        ("a cancelled call", ONE, {"BeforeToolCall": _cancels}), ("a renamed call", ONE, {"BeforeToolCall": _renames}),
        ("a changed input", ONE, {"BeforeToolCall": _changes}), ("request state", ONE, {"BeforeModelCall": _requests}),
    ):  # fmt: skip
        yield hooked(f"what events show of {name}", turns, first, table)


def _name(event: Any) -> str | None:
    return event.selected_tool and event.selected_tool.tool_name


def _noting(show: Callable[[Any], Any]) -> Callable[[World, Any], None]:
    return lambda world, event: world.note(event, f"{type(event).__name__} shows {show(event)}")


def _cancels(world: World, event: Any) -> None:
    event.cancel_tool = "no"


def _renames(world: World, event: Any) -> None:
    event.tool_use = {**event.tool_use, "name": "other"}


def _changes(world: World, event: Any) -> None:
    event.tool_use = {**event.tool_use, "input": {"x": 8}}


def _requests(world: World, event: Any) -> None:
    event.invocation_state["request_state"]["asked"] = True


ALL = [*writes(), *orders(), *views()]
