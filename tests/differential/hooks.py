"""Scenarios: hooks that cancel, retry, replace, end the turn or fail, and in which order they are called."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from tests.differential.running import Scenario
from tests.differential.sdk import EVENTS, World

from countersign.models import calls

ONE = [calls(("act", {"x": 1})), "done", "done", "done"]
TWO = [calls(("act", {"x": 1}), ("act", {"x": 2})), "done", "done", "done"]

CANCELS = {
    "BeforeInvocation": "cancel",
    "BeforeModelCall": "cancel",
    "BeforeTools": "cancel",
    "BeforeToolCall": "cancel_tool",
}


def hooked(name: str, script: Any, *tables: dict[str, Callable[..., Any]], **more: Any) -> Scenario:
    """An agent with one provider for each table of callbacks; each gets the world and the event."""

    def bound(world: World, callback: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda event: callback(world, event)

    def build(world: World) -> Any:
        providers = [world.hooks(**{k: bound(world, v) for k, v in table.items()}) for table in tables]
        return world.agent(script, hooks=providers, tools=[world.act(), world.act(name="other")])

    return Scenario(name, build, **more)


def cancels() -> Iterator[Scenario]:
    """Every event that can be cancelled, by each kind of value."""
    for (event, attribute), value, script in product(CANCELS.items(), (True, "because", False), (ONE, TWO)):
        count = 1 if script is ONE else 2
        known = ("denied-prompt-is-kept",) if event == "BeforeInvocation" and value else ()
        yield hooked(
            f"{event}.{attribute} = {value!r} with {count}", script,
            {event: lambda world, e, a=attribute, v=value: setattr(e, a, v)}, known=known,
        )  # fmt: skip
    yield hooked("one of two calls is cancelled", TWO, {"BeforeToolCall": _cancel_first})
    yield hooked(
        "the last hook decides", ONE,
        {"BeforeToolCall": lambda world, e: setattr(e, "cancel_tool", "first")},
        {"BeforeToolCall": lambda world, e: setattr(e, "cancel_tool", "second")},
    )  # fmt: skip
    yield hooked(
        "a cancellation is taken back", ONE,
        {"BeforeToolCall": lambda world, e: setattr(e, "cancel_tool", "first")},
        {"BeforeToolCall": lambda world, e: setattr(e, "cancel_tool", False)},
    )  # fmt: skip


def _cancel_first(world: World, event: Any) -> None:
    if event.tool_use["input"]["x"] == 1:
        event.cancel_tool = "not the first"


def retries() -> Iterator[Scenario]:
    """Hooks that ask for another try of a model call or a tool call."""
    for times in (0, 1, 2):
        counted = _times(times)
        yield hooked(f"{times} retries of an answer", ["a", "b", "c", "d"], {"AfterModelCall": _retry_texts(times)})
        yield hooked(f"{times} retries after model errors", [RuntimeError("e1"), RuntimeError("e2"), "fine"],
                     {"AfterModelCall": _retry_errors(times)})  # fmt: skip
        yield hooked(f"{times} retries of a call", ONE, {"AfterToolCall": counted})
        yield hooked(f"{times} retries of two calls", TWO, {"AfterToolCall": counted})
    for error in (ValueError("bad value"), RuntimeError("broke"), KeyError("gone"), ZeroDivisionError()):
        yield Scenario(f"a tool raises {error!r}", _tool_that_raises(error, retry=False))
        yield Scenario(f"a tool that raised {error!r} is retried", _tool_that_raises(error, retry=True))


def _retry_texts(times: int) -> Callable[..., None]:
    def retry(world: World, event: Any) -> None:
        text = event.stop_response.message["content"][0]["text"]
        event.retry = text < "abcd"[times]

    return retry


def _retry_errors(times: int) -> Callable[..., None]:
    def retry(world: World, event: Any) -> None:
        event.retry = event.exception is not None and str(event.exception) <= f"e{times}"

    return retry


def _times(times: int) -> Callable[..., None]:
    def retry(world: World, event: Any) -> None:
        key = event.tool_use["toolUseId"]
        done = event.agent.state.get(key) or 0
        event.agent.state.set(key, done + 1)
        event.retry = done < times

    return retry


def _tool_that_raises(error: Exception, *, retry: bool) -> Callable[[World], Any]:
    def build(world: World) -> Any:
        def body(context: Any, x: int) -> str:
            if context.agent.state.get("tried"):
                return "worked at last"
            raise error

        def after(event: Any) -> None:
            world.note(event, f"{type(event.exception).__name__} {event.exception}")
            event.retry = retry and event.exception is not None
            event.agent.state.set("tried", True)

        return world.agent(ONE, tools=[world.act(body)], hooks=[world.hooks(AfterToolCall=after)])

    return build


def replacements() -> Iterator[Scenario]:
    """What hooks put in place of inputs, tools, results, prompts and the end of a turn."""

    def use(**changes: Any) -> dict[str, Callable[..., None]]:
        return {"BeforeToolCall": lambda world, e: setattr(e, "tool_use", {**e.tool_use, **changes})}

    def select(world: World, event: Any) -> None:
        event.selected_tool = event.agent.tool_registry.registry["other"] if world.sdk.root == "strands" else (
            event.agent.tool_registry.get("other"))  # fmt: skip

    yield hooked("an input is replaced", ONE, use(input={"x": 7}))
    yield hooked("another tool is named", ONE, use(name="other"))
    yield hooked("an unknown tool is named", ONE, use(name="nobody"))
    yield hooked("a tool is selected", ONE, {"BeforeToolCall": select})
    for value in (True, "enough", [{"text": "one"}, {"text": "two"}], False):
        table = {"AfterTools": lambda world, e, v=value: setattr(e, "end_turn", v)}
        yield hooked(f"AfterTools.end_turn = {value!r}", TWO, table)
    yield hooked("a result is replaced", ONE, {"AfterToolCall": _other_result})
    yield hooked("a prompt is replaced", ONE, {"BeforeInvocation": _other_prompt})
    yield hooked("an answer is changed in place", ONE, {"AfterModelCall": _other_answer})
    for resume in ("go on", [{"text": "go on"}]):
        yield hooked(f"AfterInvocation.resume = {resume!r}", ["a", "b", "c"], {"AfterInvocation": _resume(resume)})
    for value in ("", []):
        yield hooked(f"AfterTools.end_turn = {value!r}", ONE,
                     {"AfterTools": lambda world, e, v=value: setattr(e, "end_turn", v)},
                     known=("an-empty-text-cancels",))  # fmt: skip
    yield hooked("a bad input takes its place", ONE, use(input={"y": 5}), known=("words-about-a-bad-input",))
    yield hooked("no input takes its place", ONE, use(input=None), known=("words-about-a-bad-input",))
    yield hooked("no tool is selected", ONE, {"BeforeToolCall": lambda world, e: setattr(e, "selected_tool", None)})
    yield hooked("a result grows in place", ONE, {"AfterToolCall": _more_result})
    yield hooked("the model's call is changed", ONE, {"AfterModelCall": _other_call})
    yield hooked("a retry with another input", ONE, {"BeforeToolCall": _counts_up, "AfterToolCall": _until_three},
                 known=("the-models-message-is-kept",))  # fmt: skip
    yield hooked("state is written", ONE, {"BeforeToolCall": lambda world, e: e.agent.state.set("k", {"v": [1, None]})})
    yield hooked("two turns", [*ONE[:2], *ONE[:2]], {}, prompts=("go", "again"))


def _more_result(world: World, event: Any) -> None:
    event.result["content"].append({"text": "more"})


def _other_call(world: World, event: Any) -> None:
    for block in event.stop_response.message["content"]:
        if "toolUse" in block:
            block["toolUse"]["input"] = {"x": 42}


def _counts_up(world: World, event: Any) -> None:
    count = (event.agent.state.get("count") or 0) + 1
    event.agent.state.set("count", count)
    event.tool_use = {**event.tool_use, "input": {"x": count}}


def _until_three(world: World, event: Any) -> None:
    event.retry = event.agent.state.get("count") < 3


def _other_result(world: World, event: Any) -> None:
    event.result = {"toolUseId": event.tool_use["toolUseId"], "status": "error", "content": [{"text": "hidden"}]}


def _other_prompt(world: World, event: Any) -> None:
    event.messages = [{"role": "user", "content": [{"text": "something else"}]}]


def _other_answer(world: World, event: Any) -> None:
    if event.stop_response.stop_reason == "end_turn":
        event.stop_response.message["content"] = [{"text": "rather this"}]


def _resume(prompt: Any) -> Callable[..., None]:
    def resume(world: World, event: Any) -> None:
        if not event.agent.state.get("resumed"):
            event.agent.state.set("resumed", True)
            event.resume = prompt

    return resume


FAILURES = {
    "BeforeInvocation": ("error-in-before_invocation",),
    "BeforeModelCall": ("error-in-before_model_call",),
    "BeforeTools": ("error-in-before_tool_call", "error-at-the-batch"),
    "BeforeToolCall": ("error-in-before_tool_call",),
    "AfterToolCall": ("error-in-after_tool_call",),
    "AfterTools": ("error-in-after_tool_call",),
}
"""The listed differences that a hook runs into if it fails on an event."""


def failures() -> Iterator[Scenario]:
    """A hook that raises, on each event; sync and async."""
    for name, asynchronous in product((*EVENTS, "MessageAddedEvent"), (False, True)):
        event = name.removesuffix("Event")

        def build(world: World, event: str = event, asynchronous: bool = asynchronous) -> Any:
            def fails(e: Any) -> None:
                raise ValueError(f"{event} broke")

            async def fails_later(e: Any) -> None:
                raise ValueError(f"{event} broke")

            return world.agent(ONE, hooks=[world.hooks(**{event: fails_later if asynchronous else fails})])

        known = FAILURES.get(event, ())
        yield Scenario(f"{'async' if asynchronous else 'sync'} hook on {event} raises", build, known=known)
    yield hooked("the model raises", [RuntimeError("no model")], {})
    yield hooked("the model raises later", [ONE[0], RuntimeError("no model")], {})
    yield hooked("an unknown tool is asked for", [calls(("nobody", {})), "done"], {})
    yield hooked("an input is missing", [calls(("act", {})), "done"], {}, known=("words-about-a-bad-input",))
    yield hooked("an input is of the wrong type", [calls(("act", {"x": "many"})), "done"], {},
                 known=("words-about-a-bad-input",))  # fmt: skip
    yield hooked("an input is of a close type", [calls(("act", {"x": "3"})), "done"], {},
                 known=("hooks-see-the-validated-input",))  # fmt: skip


ALL = [*cancels(), *retries(), *replacements(), *failures()]
