"""Scenarios: interrupts of hooks and tools, and what people answer."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

from tests.differential.running import Scenario, blocks
from tests.differential.sdk import World

from countersign.models import calls

VALUES: tuple[Any, ...] = ("y", "", "no", 0, 1, -2.5, True, False, [], ["a", 1], {}, {"a": {"b": None}})
REASONS: tuple[Any, ...] = (None, "why", 3, False, [], {"paths": ["a", "b"]})


def script(count: int) -> list[Any]:
    """One message with so many calls, then texts."""
    return [calls(*(("act", {"x": x}) for x in range(1, count + 1))), "done", "done", "done"]


def gate(event: Any, name: str = "ok?", **more: Any) -> Any:
    """The documents' hook: anything but "y" cancels the call, with the answer in the text."""
    answer = event.interrupt(name, reason={"x": event.tool_use["input"]["x"]}, **more)
    if answer != "y":
        event.cancel_tool = f"refused: {answer}"
    return answer


def asks(name: str, count: int, callbacks: Callable[[World], Sequence[Any]], replies: Sequence[Any] = (),
         body: Callable[[Any, int], Any] | None = None, **more: Any) -> Scenario:  # fmt: skip
    """An agent with `count` calls in one message, and these hooks."""

    def build(world: World) -> Any:
        return world.agent(script(count), hooks=list(callbacks(world)), tools=[world.act(body)])

    return Scenario(name, build, replies, **more)


def per_call() -> Iterator[Scenario]:
    """One hook asks for each of one to three calls; every combination of answers, at once and one by one."""
    hook = _one(gate)
    for count in (1, 2, 3):
        for answers in product("yn", repeat=count):
            yield asks(f"{count} calls answered {''.join(answers)}", count, hook, [answers])
            if count > 1:
                singly = [[answer] for answer in answers]
                yield asks(f"{count} calls answered {''.join(answers)} one by one", count, hook, singly)
                last_first = [[*[...] * (count - 1), answers[-1]], answers[:-1]]
                yield asks(f"{count} calls answered {''.join(answers)} the last one first", count, hook, last_first)
    yield asks("only the second call is gated", 3, _one(lambda e: gate(e) if e.tool_use["input"]["x"] == 2 else None),
               [["y"]])  # fmt: skip
    yield asks("a call that nobody answers", 2, hook)

    def two_turns(world: World) -> Any:
        turn = script(2)[:2]
        return world.agent([*turn, *turn], hooks=list(hook(world)))

    for first, second in product("yn", repeat=2):
        yield Scenario(f"two turns answered {first}{second}", two_turns, [[first] * 2, [second] * 2], ("go", "again"))


def _one(callback: Callable[[Any], Any]) -> Callable[[World], Sequence[Any]]:
    return lambda world: [world.hooks(BeforeToolCall=callback)]


def values() -> Iterator[Scenario]:
    """Answers and reasons of every JSON type."""

    def keep(event: Any) -> None:
        event.agent.state.set("answer", event.interrupt("q", reason="any"))

    for value in VALUES:
        known = ("a-no-is-a-no",) if value == "no" or value is False else ()
        yield asks(f"a hook hears {value!r}", 1, _one(keep), [[value]], known=known)
        yield asks(
            f"a batch hook hears {value!r}", 1, lambda world: [world.hooks(BeforeTools=keep)], [[value]], known=known
        )
        yield asks(f"a tool hears {value!r}", 1, lambda world: [], [[value]], lambda c, x: [c.interrupt("q")])
    for reason in REASONS:
        yield asks(f"a hook gives the reason {reason!r}", 1, _one(_asks_with(reason)), [["y"]])
        yield asks(f"a tool gives the reason {reason!r}", 1, lambda world: [], [["y"]],
                   _body_asks_with(reason))  # fmt: skip
    for value in VALUES:
        hook = _one(_knows(value))
        yield asks(f"a hook knows the answer {value!r}", 1, hook)


def _asks_with(reason: Any) -> Callable[[Any], None]:
    def hook(event: Any) -> None:
        event.interrupt("q", reason=reason)

    return hook


def _body_asks_with(reason: Any) -> Callable[[Any, int], Any]:
    return lambda context, x: context.interrupt("q", reason=reason)


def _knows(value: Any) -> Callable[[Any], None]:
    return lambda event: event.agent.state.set("answer", event.interrupt("q", response=value))


def several() -> Iterator[Scenario]:
    """Two hooks on one event, and one hook that asks again and again."""

    def two(world: World) -> Sequence[Any]:
        return [world.hooks(BeforeToolCall=lambda e: gate(e, "first")),
                world.hooks(BeforeToolCall=lambda e: gate(e, "second"))]  # fmt: skip

    for answers in product("yn", repeat=2):
        yield asks(f"two hooks hear {answers}", 1, two, [answers])
        known = ("a-refusal-does-not-wait",) if answers[0] == "n" else ()
        yield asks(f"two hooks hear {answers} one by one", 1, two, [[answers[0]], [answers[1]]], known=known)
        yield asks(f"two hooks hear {answers} for two calls", 2, two, [answers * 2])

    def turns(event: Any, count: int = 3) -> None:
        heard = [event.interrupt(f"q{n}", reason=n) for n in range(count)]
        event.agent.state.set("heard", heard)

    yield asks("one hook asks three times in turn", 1, _one(turns), [["a"], ["b"], ["c"]])
    yield asks("one hook asks three times in turn for two calls", 2, _one(turns), [["a", "b"]] * 3)
    yield asks("one hook asks three times and is left alone", 1, _one(turns), [["a"]])

    def same(world: World) -> Sequence[Any]:
        return [world.hooks(BeforeToolCall=gate), world.hooks(BeforeToolCall=gate)]

    yield asks("two hooks use one name", 1, same, known=("error-in-before_tool_call",))

    def cancels(world: World) -> Sequence[Any]:
        return [world.hooks(BeforeToolCall=lambda e: setattr(e, "cancel_tool", "no")),
                world.hooks(BeforeToolCall=gate)]  # fmt: skip

    yield asks("a hook has cancelled before another asks", 1, cancels, [["y"]], known=("nobody-is-asked-in-vain",))

    def later(event: Any) -> Any:
        return event.interrupt("later") if event.agent.state.get("n") else event.agent.state.set("n", 1)

    yield asks("a hook asks only the second time", 1, lambda world: [
        world.hooks(BeforeToolCall=later), world.hooks(BeforeToolCall=gate)], [["y"], ["y"], ["y"]],
    )  # fmt: skip


def batches() -> Iterator[Scenario]:
    """The batch hook, alone, twice and beside hooks for each call."""

    def batch(event: Any, name: str = "batch") -> None:
        answer = event.interrupt(name, reason={"calls": len(event.message["content"])})
        if answer != "y":
            event.cancel = True if answer == "n" else f"refused: {answer}"

    def hook(world: World) -> Sequence[Any]:
        return [world.hooks(BeforeTools=batch)]

    def both(world: World) -> Sequence[Any]:
        return [world.hooks(BeforeTools=batch, BeforeToolCall=gate)]

    for count, answer in product((1, 2, 3), ("y", "n", "not like this")):
        yield asks(f"a batch of {count} hears {answer}", count, hook, [[answer]])
    for first, second in product("yn", repeat=2):
        yield asks(f"a batch hears {first}, its calls {second}", 2, both, [[first], [second] * 2])
        yield asks(f"two batch hooks hear {first}{second}", 2,
                   lambda world: [world.hooks(BeforeTools=lambda e: batch(e, "one")),
                                  world.hooks(BeforeTools=lambda e: batch(e, "two"))], [[first, second]])  # fmt: skip

    def twice(event: Any) -> None:
        heard = [event.interrupt("one"), event.interrupt("two")]
        event.cancel = "".join(heard)

    yield asks("a batch hook asks twice in turn", 2, lambda world: [world.hooks(BeforeTools=twice)], [["a"], ["b"]])


def bodies() -> Iterator[Scenario]:
    """Tools that ask from their body."""

    def once(context: Any, x: int) -> str:
        return f"{x}: {context.interrupt('body', reason={'x': x})}"

    def twice(context: Any, x: int) -> str:
        return f"{x}: {context.interrupt('one')}{context.interrupt('two')}"

    def mixed(context: Any, x: int) -> str:
        return once(context, x) if x == 2 else str(x)

    for count in (1, 2, 3):
        yield asks(f"{count} bodies ask", count, lambda world: [], ["abc"[:count]], once)
        yield asks(f"{count} bodies ask twice", count, lambda world: [], ["abc"[:count], "def"[:count]], twice)
    yield asks("one body of three asks", 3, lambda world: [], [["b"]], mixed)
    yield asks("two bodies are answered one by one", 2, lambda world: [], [["a"], ["b"]], once,
               known=("a-body-that-waits-is-not-run",))  # fmt: skip
    for answers in product("yn", "ab"):
        yield asks(f"a hook and a body hear {answers}", 1, _one(gate), [[answer] for answer in answers], once)


def wrong() -> Iterator[Scenario]:
    """Answers that are none."""
    hook = _one(gate)
    yield asks("a prompt while a question is open", 1, hook, [lambda interrupts: "hello"])  # type: ignore[list-item]  # wrong
    yield asks("an answer to nobody's question", 1, hook,
               [lambda interrupts: [{"interruptResponse": {"interruptId": "nope", "response": "y"}}]],
               known=("refused-answers-have-codes",))  # fmt: skip
    yield asks("an answer without a response", 1, hook,
               [lambda interrupts: [{"interruptResponse": {"interruptId": interrupts[0].id}}]],
               known=("refused-answers-have-codes",))  # fmt: skip
    yield asks("text beside an answer", 1, hook, [lambda interrupts: [*blocks(interrupts, ["y"]), {"text": "and"}]],
               known=("refused-answers-have-codes",))  # fmt: skip


def trusting() -> Iterator[Scenario]:
    """The documents' example of trust: answers kept in `agent.state`."""

    def hook(event: Any) -> None:
        if event.agent.state.get("approval") == "t":
            return
        approval = event.interrupt("approval", reason=event.tool_use["input"])
        if approval.lower() not in ["y", "t"]:
            event.cancel_tool = "User denied permission"
        event.agent.state.set("approval", approval.lower())

    def build(world: World) -> Any:
        turn = script(1)[:2]
        return world.agent([*turn, *turn], hooks=[world.hooks(BeforeToolCall=hook)])

    for first, second in product("ynt", repeat=2):
        yield Scenario(f"trust: {first} then {second}", build, [[first], [second]], ("go", "again"))


ALL = [*per_call(), *values(), *several(), *batches(), *bodies(), *wrong(), *trusting()]
