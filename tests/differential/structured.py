"""Scenarios: structured output, of the agent or of one call, with what hooks, handlers and people say to it."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Literal

from pydantic import BaseModel, Field
from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls


class Report(BaseModel):
    """What was found."""

    title: str
    pages: int = Field(default=1, ge=1, description="how many")
    due: date | None = None
    kind: Literal["long", "short"] = "short"


class Other(BaseModel):
    title: str


ACT, GOOD, BAD = ("act", {"x": 1}), ("Report", {"title": "t"}), ("Report", {"pages": 0})
FULL = ("Report", {"title": "t", "pages": 2, "due": "2030-01-02", "kind": "long"})
WIDER = ("Report", {"title": "t", "pages": "3", "more": [1]})

ANSWERS: dict[str, list[Any]] = {
    "at once": [calls(GOOD)],
    "with all fields": [calls(FULL, text="here")],
    "with a field that is not known, and one to convert": [calls(WIDER)],
    "after a tool": [calls(ACT), calls(GOOD)],
    "when asked": ["hello", calls(GOOD)],
    "when asked, as text": ["hello", '{"title": "t", "pages": 2}'],
    "when asked, as text after a tool": [calls(ACT), "hello", '{"title": "t"}'],
    "never": ["hello", "no"],
    "never, as text that does not fit": ["hello", '{"pages": 1}'],
    "never, as text that is no object": ["hello", "[1]"],
    "at the second try": [calls(BAD), calls(GOOD)],
    "at the second try when asked": ["hello", calls(BAD), calls(GOOD)],
    "at the second try when asked, as text": ["hello", calls(BAD), '{"title": "t"}'],
    "after another tool when asked": ["hello", calls(ACT), calls(GOOD)],
    "beside a tool": [calls(ACT, GOOD)],
    "before a tool": [calls(GOOD, ACT)],
    "twice": [calls(GOOD, FULL)],
    "beside one that does not fit": [calls(BAD, GOOD)],
    "after an unknown tool": [calls(("nothing", {})), calls(GOOD)],
    "not as an object": [calls(("Report", [1])), calls(GOOD)],
}


def ways() -> Iterator[Scenario]:
    """How a model comes to it: for the agent, for one call, and in the turn after."""
    again = ["again", calls(GOOD)]
    for name, script in ANSWERS.items():
        for prompts in (("go",), ("go", "go")):
            turns = [*script, *(again if len(prompts) > 1 else [])]
            yield Scenario(f"output {name}, {len(prompts)} turns", _agent(turns, structured_output_model=Report),
                           prompts=prompts)  # fmt: skip
        yield Scenario(f"output of a call {name}", _agent(script), call={"structured_output_model": Report})
    other = _agent(["a", calls(GOOD)], structured_output_model=Other)
    yield Scenario("output of a call in place of the agent's", other,
                   call={"structured_output_model": Report})  # fmt: skip
    yield Scenario("words of the agent", _agent(["a", calls(GOOD)], structured_output_model=Report,
                                                structured_output_prompt="Now, please."))  # fmt: skip
    yield Scenario("words of the call", _agent(["a", calls(GOOD)], structured_output_model=Report),
                   call={"structured_output_prompt": "Now, please."})  # fmt: skip


def _agent(script: Any, **options: Any) -> Callable[[World], Any]:
    return lambda world: world.agent(script, **options)


def _on_report(event: Any) -> bool:
    return bool(event.tool_use["name"] == "Report")


def _once(event: Any) -> bool:
    done = event.agent.state.get("done")
    event.agent.state.set("done", True)
    return not done


def _set(name: str, value: Any, when: Callable[[Any], bool]) -> Callable[[Any], None]:
    return lambda event: setattr(event, name, value) if when(event) else None


def _edit(event: Any) -> None:
    if _on_report(event):
        event.tool_use["input"] = {"title": "by a hook"}


def _fails(event: Any) -> None:
    if _on_report(event) and _once(event):
        event.result = {**event.result, "status": "error", "content": [{"text": "not good enough"}]}


HOOKS: dict[str, dict[str, Any]] = {
    "BeforeToolCall cancels": {"BeforeToolCall": _set("cancel_tool", "no", _on_report)},
    "BeforeToolCall cancels once": {"BeforeToolCall": _set("cancel_tool", "no", lambda e: _on_report(e) and _once(e))},
    "BeforeToolCall edits": {"BeforeToolCall": _edit},
    "BeforeTools cancels once": {"BeforeTools": _set("cancel", "no", _once)},
    "BeforeModelCall cancels": {"BeforeModelCall": _set("cancel", "no", lambda e: True)},
    "BeforeModelCall cancels once": {"BeforeModelCall": _set("cancel", "no", _once)},
    "BeforeInvocation cancels": {"BeforeInvocation": _set("cancel", "no", lambda e: True)},
    "AfterToolCall retries": {"AfterToolCall": _set("retry", True, lambda e: _on_report(e) and _once(e))},
    "AfterToolCall makes it an error": {"AfterToolCall": _fails},
    "AfterTools ends the turn": {"AfterTools": _set("end_turn", "enough", lambda e: True)},
    "AfterModelCall retries": {"AfterModelCall": _set("retry", True, _once)},
    "AfterToolCall cancels the turn": {"AfterToolCall": lambda e: e.agent.cancel(message="stop")},
    "BeforeTools cancels the turn": {"BeforeTools": lambda e: e.agent.cancel(message="stop")},
    "AfterInvocation goes on": {"AfterInvocation": _set("resume", "more", _once)},
}
KNOWN = {
    "BeforeToolCall edits": ("the-models-message-is-kept",),
    "BeforeInvocation cancels": ("denied-prompt-is-kept",),
}
COMINGS = ("at once", "when asked", "after a tool", "beside a tool", "at the second try when asked")


def watched() -> Iterator[Scenario]:
    """Hooks and handlers see the calls of that tool, too, and may do to them what they do to others."""
    for hook, callbacks in HOOKS.items():
        for coming in COMINGS:
            script = [*ANSWERS[coming], "text", calls(GOOD), "text", calls(GOOD)]
            known = KNOWN.get(hook, ())
            if hook == "AfterToolCall retries":
                known = ("only-what-ran-is-retried",) if "second try" in coming else ()
            yield Scenario(f"output {coming}, {hook}", _hooked(script, callbacks), known=known)
    for turns in (1, 2, 3):
        for coming in COMINGS:
            yield Scenario(f"output {coming}, {turns} cycles at most",
                           _agent([*ANSWERS[coming], calls(GOOD)], structured_output_model=Report),
                           call={"limits": {"turns": turns}})  # fmt: skip


def _hooked(script: Any, callbacks: dict[str, Any]) -> Callable[[World], Any]:
    return lambda world: world.agent(script, hooks=[world.hooks(**callbacks)], structured_output_model=Report)


def _denying(verdict: str) -> Callable[[World], Any]:
    def build(world: World) -> Any:
        def body(event: Any) -> Any:
            if not _on_report(event) or not _once(event):
                return world.sdk.Proceed()
            return world.sdk.Deny(reason="no") if verdict == "Deny" else world.sdk.Guide(feedback="better")

        handler = world.handler("h", before_tool_call=body)
        return world.agent(["hello", calls(GOOD), calls(FULL)], handlers=[handler], structured_output_model=Report)

    return build


def _human(script: Any, **options: Any) -> Callable[[World], Any]:
    return lambda world: world.agent(
        script, handlers=[world.sdk.HumanInTheLoop(**options)], structured_output_model=Report
    )


def people() -> Iterator[Scenario]:
    """Handlers judge it, and people are asked about it, like any call; the request outlives the pause."""
    for verdict in ("Deny", "Guide"):
        yield Scenario(f"output, a handler says {verdict}", _denying(verdict))
    for coming in ("at once", "when asked", "after a tool"):
        for answer in ("y", "n"):
            script = [*ANSWERS[coming], "well", calls(FULL)]
            yield Scenario(f"output {coming}, people asked about everything say {answer}", _human(script),
                           [[answer]] * 3)  # fmt: skip
            yield Scenario(f"output {coming}, people asked about the rest say {answer}",
                           _human(script, allowed_tools=["Report"]), [[answer]] * 2)  # fmt: skip


ALL = [*ways(), *watched(), *people()]
