"""Scenarios: what handlers return, at which method, and what happens if they fail."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls

METHODS = ("before_invocation", "before_tool_call", "after_tool_call", "before_model_call", "after_model_call")
FAILS = tuple(f"{where}-{policy}" for where in ("raise", "apply", "none") for policy in ("throw", "proceed", "deny"))
ACTIONS = ("proceed", "deny", "guide", "confirm", "transform")
PIPELINE = (*ACTIONS, "raise-throw", "raise-proceed", "raise-deny")
ANSWERS = ("y", "YES", " yes", "n", "no", "later", True, False, 0, 1, "", [], {}, {"a": 1}, "yes please")

SCRIPT = [calls(("act", {"x": 1})), "done", "done", "done"]


def transform(world: World, method: str, name: str) -> Callable[[Any], None]:
    """A change that shows; what a call's input is replaced by, never changed in place (see `differences`)."""

    def apply(event: Any) -> None:
        if method == "before_invocation":
            event.messages = [{"role": "user", "content": [{"text": f"{name} rewrote it"}]}]
        elif method == "before_tool_call":
            value = event.tool_use["input"]
            event.tool_use = {**event.tool_use, "input": {**value, "x": value["x"] * 10}}
        elif method == "after_tool_call":
            event.result = {**event.result, "content": [*event.result["content"], {"text": f"{name} was here"}]}
        elif method == "before_model_call":
            event.agent.state.set(name, "was here")
        elif event.stop_response is not None:
            event.stop_response.message["content"].append({"text": f"{name} was here"})

    return apply


def make(world: World, name: str, kind: str, method: str) -> Any:
    """A handler that does one kind of thing at one method."""
    what, _, policy = kind.partition("-")
    sdk = world.sdk

    def method_body(event: Any) -> Any:
        world.note(event, f"{name} hears {method}")
        if what == "raise":
            raise ValueError(f"{name} broke")
        if what == "none":
            return None
        if what == "guide" and method == "after_model_call":
            if event.agent.state.get(f"{name} has guided"):
                return sdk.Proceed()
            event.agent.state.set(f"{name} has guided", True)
        return {
            "proceed": sdk.Proceed,
            "deny": lambda: sdk.Deny(reason=f"{name} says no"),
            "guide": lambda: sdk.Guide(feedback=f"{name} says how"),
            "confirm": lambda: sdk.Confirm(prompt=f"{name} asks"),
            "transform": lambda: sdk.Transform(apply=transform(world, method, name)),
            "apply": lambda: sdk.Transform(apply=_broken(name)),
        }[what]()

    return world.handler(name, policy or "throw", **{method: method_body})


def _broken(name: str) -> Callable[[Any], None]:
    def apply(event: Any) -> None:
        raise ValueError(f"{name} broke while applying")

    return apply


def pipeline(kinds: Sequence[str], method: str, replies: Sequence[Any] = ()) -> Scenario:
    """Handlers of these kinds, one after the other."""

    def build(world: World) -> Any:
        return world.agent(SCRIPT, handlers=[make(world, "abc"[i], kind, method) for i, kind in enumerate(kinds)])

    said = "".join(f" {reply!r}" for reply in replies)
    return Scenario(f"{method} {'+'.join(kinds)}{said}", build, replies, known=_known(kinds, method, replies))


def _known(kinds: Sequence[str], method: str, replies: Sequence[Any]) -> tuple[str, ...]:
    """The listed differences that a pipeline runs into."""
    before = method.startswith("before_")
    heard = _heard(kinds, method)
    found = []
    if any(kind in ("none-proceed", "none-deny") for kind in heard):
        found.append("none-follows-on-error")
    if method == "before_invocation" and any(_stops(kind) for kind in heard):
        found.append("denied-prompt-is-kept")
    if any(kind.endswith("-throw") for kind in heard):
        found.append(f"error-in-{method}")
    if not before and any(kind.endswith("-deny") for kind in heard):
        found.append("deny-fails-closed-afterwards")
    if method == "before_tool_call" and "confirm" in heard:
        if any(_stops(kind) or kind.endswith("-throw") for kind in heard):
            found.append("nobody-is-asked-in-vain")
        elif kinds[-1] != "confirm" or kinds.count("confirm") > 1:
            found.append("all-are-heard-before-asking")
        if ["yes please"] in replies:
            found.append("refusal-has-its-words")
    return tuple(found)


def _heard(kinds: Sequence[str], method: str) -> list[str]:
    """The kinds as far as they are heard here: up to the first that fails the turn or, before an event, denies."""
    heard = []
    for kind in kinds:
        heard.append(kind)
        if kind.endswith("-throw") or (method.startswith("before_") and kind.endswith("deny")):
            break
    return heard


def _stops(kind: str) -> bool:
    return kind.endswith("deny") or kind == "guide"


def single() -> Iterator[Scenario]:
    """Each action and each failure at each method; Confirm is answered in every way."""
    for method, kind in product(METHODS, (*ACTIONS, *FAILS)):
        if kind == "confirm" and method == "before_tool_call":
            for answer in ANSWERS:
                yield pipeline([kind], method, [[answer]])
        else:
            yield pipeline([kind], method)


def pairs() -> Iterator[Scenario]:
    """Two handlers, everywhere; where one asks, for an approval and a refusal."""
    for method, *kinds in product(METHODS, PIPELINE, PIPELINE):
        yield from _answered(kinds, method)


def triples() -> Iterator[Scenario]:
    """Three handlers before a tool call."""
    for kinds in product(ACTIONS, ACTIONS, ACTIONS):
        yield from _answered(kinds, "before_tool_call")


def _answered(kinds: Sequence[str], method: str) -> Iterator[Scenario]:
    if "confirm" not in kinds or method != "before_tool_call":
        yield pipeline(kinds, method)
        return
    for word in ("y", "n"):
        yield pipeline(kinds, method, [["y"], [word], [word]] if kinds.count("confirm") > 1 else [[word]])


ALL = [*single(), *pairs(), *triples()]
