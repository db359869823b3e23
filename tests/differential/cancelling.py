"""Scenarios: `agent.cancel()`, from the program, from hooks, between a question and its answer."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.differential.running import Does, Scenario
from tests.differential.sdk import World


def script(scene: Any) -> Any:
    """Two calls, then "done", whatever was cancelled before."""
    return [_use(1), _use(2)] if len(scene.turn) == 1 else "done"


def _use(x: int) -> Any:
    return {"toolUse": {"toolUseId": f"use-{x}", "name": "act", "input": {"x": x}}}


HOW: tuple[dict[str, Any], ...] = ({}, {"message": "bye"}, {"after_current_tools": True})
EVENTS = (
    "BeforeInvocation", "BeforeModelCall", "AfterModelCall", "BeforeTools", "BeforeToolCall", "AfterToolCall",
    "AfterTools", "AfterInvocation",
)  # fmt: skip

WORDS = "a-cancelled-turn-ends-with-words"
NO_MODEL = "a-cancelled-turn-calls-no-model"


def _cancels(event: str, how: dict[str, Any], **options: Any) -> Callable[[World], Any]:
    def build(world: World) -> Any:
        def hook(e: Any) -> None:
            if not e.agent.state.get("cancelled"):
                e.agent.state.set("cancelled", True)
                e.agent.cancel(**how)

        return world.agent(script, hooks=[world.hooks(**{event: hook})], **options)

    return build


def from_hooks() -> Iterator[Scenario]:
    """Each event, each way; and the next turn."""
    for event in EVENTS:
        for how in HOW:
            early = event in ("BeforeInvocation", "BeforeModelCall") and "after_current_tools" not in how
            worded = "message" in how or event == "AfterInvocation"
            yield Scenario(f"cancel at {event} {how}", _cancels(event, how), prompts=("go", "again"),
                           known=(NO_MODEL,) if early else () if worded else (WORDS,))  # fmt: skip


def while_it_answers() -> Iterator[Scenario]:
    """The model is told to stop in the middle of what it says."""
    for kind in ("calls", "text"):
        for how in HOW:
            yield Scenario(f"cancel while the model gives {kind} {how}", _cancels_model(kind, how),
                           prompts=("go", "again"), known=(WORDS,) if kind == "calls" and "after_current_tools" in how
                           else ())  # fmt: skip


def _cancels_model(kind: str, how: dict[str, Any]) -> Callable[[World], Any]:
    def build(world: World) -> Any:
        held: list[Any] = []

        def says(scene: Any) -> Any:
            if len(scene.messages) == 1:
                held[0].cancel(**how)
            return [_use(1)] if kind == "calls" and len(scene.turn) == 1 else "text"

        held.append(world.agent(says))
        return held[0]

    return build


def _cancel(how: dict[str, Any], agent: Any) -> None:
    agent.cancel(**how)


def from_outside() -> Iterator[Scenario]:
    """Before an invocation, and between a question and its answer."""

    def asking(world: World) -> Any:
        def hook(e: Any) -> None:
            if e.interrupt("ok?") != "y":
                e.cancel_tool = "denied"

        return world.agent(script, hooks=[world.hooks(BeforeToolCall=hook)])

    for how in HOW:
        cancel = Does(partial(_cancel, how))
        known = () if "after_current_tools" in how else (NO_MODEL,)
        yield Scenario(
            f"cancel before the prompt {how}",
            lambda world: world.agent(script),
            prompts=(cancel, "go", "again"),
            known=known,
        )
    for how in HOW:

        def answers(interrupts: Any, how: dict[str, Any] = how) -> Any:
            return [{"interruptResponse": {"interruptId": item.id, "response": "y"}} for item in interrupts]

        yield Scenario(f"cancel between question and answer {how}", cancelled_then_answered(asking, how), (answers,),
                       known=(WORDS,) if not how else ())  # fmt: skip


def cancelled_then_answered(build: Callable[[World], Any], how: dict[str, Any]) -> Callable[[World], Any]:
    """An agent that is cancelled right after its first invocation."""

    def built(world: World) -> Any:
        agent = build(world)
        invoke, done = agent.invoke_async, []

        async def then_cancel(*args: Any, **kwargs: Any) -> Any:
            result = await invoke(*args, **kwargs)
            if not done:
                done.append(1)
                agent.cancel(**how)
            return result

        agent.invoke_async = then_cancel
        return agent

    return built


ALL = [*from_hooks(), *from_outside(), *while_it_answers()]
