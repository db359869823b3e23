"""Scenarios: what a user passes in and gets back: prompts, tools' results, limits, turns after a failure."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls

ONE = [calls(("act", {"x": 1})), "done", "done", "done"]

RESULTS: tuple[Any, ...] = (
    "text", "", 1, 1.5, True, None, [], [1, "a"], {}, {"a": [1, None]}, "ä€", "line\nline", (1, 2),
    {"status": "success", "content": [{"text": "own"}]},
    {"status": "error", "content": [{"text": "own error"}]},
    {"status": "success", "content": [{"json": {"a": 1}}]},
    {"status": "success", "content": [{"text": "a"}, {"text": "b"}]},
    {"status": "fine", "content": []},
    {"status": "success"},
)  # fmt: skip

PROMPTS: tuple[Any, ...] = (
    "go", [{"text": "go"}], [{"text": "a"}, {"text": "b"}],
    [{"image": {"format": "png", "source": {"bytes": "aGk="}}}, {"text": "what is it?"}],
)  # fmt: skip


def result_shapes() -> Iterator[Scenario]:
    """What a tool returns, as the model sees it."""
    for value in RESULTS:
        known = ("a-result-has-a-status",) if isinstance(value, dict) and value.get("status") == "fine" else ()
        yield _body(f"a tool returns {value!r}", _returns(value), known)

    def writes(context: Any, x: int) -> str:
        context.agent.state.set("written", [x, {"by": "the tool"}])
        return "wrote"

    def deletes(context: Any, x: int) -> str:
        context.agent.state.delete("before")
        return str(context.agent.state.get("before"))

    yield _body("a tool writes to the state", writes)
    yield _body("a tool deletes from the state", deletes, state={"before": 1, "other": 2})
    yield _body("a tool reads its use", lambda context, x: f"{context.tool_use['name']} {context.tool_use['input']}")


def _body(name: str, body: Callable[[Any, int], Any], known: tuple[str, ...] = (), **options: Any) -> Scenario:
    return Scenario(name, lambda world: world.agent(ONE, tools=[world.act(body)], **options), known=known)


def _returns(value: Any) -> Callable[[Any, int], Any]:
    return lambda context, x: copy.deepcopy(value)  # the reference writes the call's id into it


def conversations() -> Iterator[Scenario]:
    """Prompts of every shape, messages to start from, several turns, text beside calls."""
    for prompt in PROMPTS:
        yield Scenario(f"prompt {prompt!r:.40}", lambda world: world.agent(["hello"]), prompts=(prompt,))
    before = [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [{"text": "hello"}]}]
    yield Scenario("messages to start from", lambda world: world.agent(["fine"], messages=[*before]))
    yield Scenario("three turns", lambda world: world.agent(["a", "b", "c"]), prompts=("1", "2", "3"))
    yield Scenario("text beside a call", lambda world: world.agent([calls(("act", {"x": 1}), text="I act"), "done"]))
    yield Scenario("many cycles", lambda world: world.agent([*(calls(("act", {"x": x})) for x in range(8)), "done"]))
    for blank in ("", "  \n"):
        yield _says(f"a blank answer {blank!r}", [blank, "fine"], ("a", "b"))
        yield _says(f"a blank text {blank!r} beside a call", [[{"text": blank}, *ONE[0]], "fine"])
        yield _says(f"a blank text {blank!r} beside a text", [[{"text": blank}, {"text": "x"}], "fine"], ("a", "b"))
    for name in ("no such name!", "x" * 65, "", "ä"):
        yield _says(f"a tool named {name!r:.20}", [calls((name, {})), "done"], known=("a-name-that-is-none",))
    yield Scenario("a system prompt", lambda world: world.agent(["hello"], system_prompt="Be kind."))


def _says(name: str, script: list[Any], prompts: tuple[str, ...] = ("go",), **more: Any) -> Scenario:
    return Scenario(name, lambda world: world.agent(script), prompts=prompts, **more)


def passed_in() -> Iterator[Scenario]:
    """Limits and the invocation's state, which hooks and tools see."""
    many = [calls(("act", {"x": x})) for x in range(5)]
    for turns in (1, 2, 5, 9):
        yield Scenario(f"at most {turns} turns", lambda world: world.agent([*many, "done"]), prompts=("go", "again"),
                       call={"limits": {"turns": turns}})  # fmt: skip
    for limit in ("total_tokens", "output_tokens"):
        for count in (1, 12, 1000):
            yield Scenario(f"at most {count} {limit}", lambda world: world.agent([*many, "done"]),
                           call={"limits": {limit: count}})  # fmt: skip

    def told(world: World) -> Any:
        def hook(event: Any) -> None:
            world.note(event, f"told {event.invocation_state.get('user')} {event.invocation_state.get('deep')}")

        def body(context: Any, x: int) -> str:
            return f"told {context.invocation_state.get('user')}"

        events = ("BeforeInvocation", "BeforeModelCall", "AfterModelCall", "BeforeTools", "BeforeToolCall",
                  "AfterToolCall", "AfterTools", "AfterInvocation")  # fmt: skip
        return world.agent(ONE, tools=[world.act(body)], hooks=[world.hooks(**dict.fromkeys(events, hook))])

    yield Scenario("invocation state", told, call={"invocation_state": {"user": "ana", "deep": {"a": [1]}}})
    yield Scenario("invocation state by name", told, call={"user": "ana", "deep": {"a": [1]}})
    yield Scenario("no invocation state", told)


def after_failures() -> Iterator[Scenario]:
    """The next turn after one that failed or was left open."""
    yield Scenario("a turn after a model error", lambda world: world.agent([RuntimeError("no"), "fine"]),
                   prompts=("go", "again"))  # fmt: skip
    yield Scenario("a turn after a hook's error before the model", _fails_once("BeforeModelCall"),
                   prompts=("go", "again"), known=("error-in-before_model_call",))  # fmt: skip
    yield Scenario("a turn after a hook's error after the model", _fails_once("AfterModelCall"),
                   prompts=("go", "again"), known=("error-in-after_model_call",))  # fmt: skip
    yield Scenario("a turn after a hook's error before a tool", _fails_once("BeforeToolCall"),
                   prompts=("go", "again"), known=("error-in-before_tool_call",))  # fmt: skip


def _fails_once(event: str) -> Callable[[World], Any]:
    def build(world: World) -> Any:
        def hook(e: Any) -> None:
            if not e.agent.state.get("failed"):
                e.agent.state.set("failed", True)
                raise ValueError("once")

        return world.agent(ONE, hooks=[world.hooks(**{event: hook})])

    return build


def definitions() -> Iterator[Scenario]:
    """What can't be built, in the words that a user may match."""

    def trying(what: Callable[[World], Any]) -> Callable[[World], Any]:
        def build(world: World) -> Any:
            try:
                what(world)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            else:
                text = "no error"
            return world.agent([text])

        return build

    def twins(world: World) -> Any:
        return world.agent(ONE, handlers=[world.handler("h"), world.handler("h")])

    def no_event(world: World) -> None:
        world.sdk.HookRegistry().add_callback([], print)

    yield Scenario("two handlers of one name", trying(twins))
    yield Scenario("no event type", trying(no_event))
    yield Scenario("a list of names is wanted", trying(lambda world: world.sdk.HumanInTheLoop(allowed_tools="act")),
                   known=("errors-of-definitions",))  # fmt: skip
    yield Scenario("what is no event", trying(lambda world: world.sdk.HookRegistry().add_callback([int], print)),
                   known=("errors-of-definitions",))  # fmt: skip


ALL = [*result_shapes(), *conversations(), *passed_in(), *after_failures(), *definitions()]
