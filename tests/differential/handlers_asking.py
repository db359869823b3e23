"""Scenarios: handlers that ask by `event.interrupt` themselves, alone and beside others."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from tests.differential.asking import script
from tests.differential.running import Scenario
from tests.differential.sdk import World


def by_handlers() -> Iterator[Scenario]:
    """Handlers that ask by `event.interrupt` themselves, alone and beside others."""
    for policy, answers in product(("throw", "proceed", "deny"), product("yn", repeat=2)):
        yield _with(f"a handler asks itself, on_error={policy}, hears {answers}", 2, [("asks", policy)], [answers])
    yield _with("a handler asks itself twice", 1, [("asks twice", "throw")], [["y"], ["n"]])
    yield _with("a handler asks while it transforms", 1, [("transforms", "throw")], [["y"]])
    yield _with("a handler asks behind a guide", 1, [("guides", "throw"), ("asks", "throw")], [["y"]],
                ("nobody-is-asked-in-vain",))  # fmt: skip
    yield _with("a handler asks behind a deny", 1, [("denies", "throw"), ("asks", "throw")], [["y"]])
    yield _with("a handler asks before a deny", 1, [("asks", "throw"), ("denies", "throw")], [["y"]],
                ("nobody-is-asked-in-vain",))  # fmt: skip
    yield _with("a handler asks itself, then another confirms", 1, [("asks", "throw"), ("confirms", "throw")],
                [["y"], ["y"]])  # fmt: skip
    yield _with("two handlers ask themselves", 1, [("asks", "throw"), ("asks", "throw")], [["y"], ["y"]],
                ("handlers-ask-together",))  # fmt: skip


def _with(name: str, count: int, kinds: Sequence[tuple[str, str]], replies: Sequence[Any],
          known: tuple[str, ...] = ()) -> Scenario:  # fmt: skip
    """An agent with a handler of each kind and policy."""

    def build(world: World) -> Any:
        handlers = [world.handler(f"h{place}", policy, before_tool_call=_handler(world, f"h{place}", kind))
                    for place, (kind, policy) in enumerate(kinds)]  # fmt: skip
        return world.agent(script(count), handlers=handlers)

    return Scenario(name, build, replies, known=known)


def _handler(world: World, name: str, kind: str) -> Callable[[Any], Any]:
    def asks(event: Any) -> Any:
        answers = [event.interrupt(f"{name}-{n}", reason=n) for n in range(2 if kind == "asks twice" else 1)]
        world.note(event, f"{name} heard {answers}")
        return world.sdk.Deny(reason=f"{answers}") if "n" in answers else world.sdk.Proceed()

    actions: dict[str, Callable[[Any], Any]] = {
        "transforms": lambda event: world.sdk.Transform(apply=asks),
        "guides": lambda event: world.sdk.Guide(feedback="like this"),
        "denies": lambda event: world.sdk.Deny(reason="never"),
        "confirms": lambda event: world.sdk.Confirm(prompt="sure?"),
    }
    return actions.get(kind, asks)


ALL = [*by_handlers()]
