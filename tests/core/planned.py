"""Agents that are told by their prompt what to do: the script of the model, hooks, handlers, and people's answers.

A plan is plain JSON and stands in the conversation's first message, so one served agent can play any of them.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from countersign import Agent, InterventionHandler, ScriptedModel, ToolContext, durable, tool
from countersign.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    AfterToolsEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    BeforeToolsEvent,
)
from countersign.interventions import Confirm, Deny, Guide, Proceed, Transform
from countersign.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor
from countersign.vended_interventions.hitl import ClassifierResult, HumanInTheLoop

RAN = "ran "
TURNS = 12

TOOLS = ("act", "act", "act", "again", "asks", "missing")
HOOKS = (
    "ask", "ask", "batch", "second", "grow", "default", "cancel 2", "raise 1", "raise on resume", "raise after 1",
    "retry once", "retry once", "swallow", "end turn", "cancel", "raise at model", "rename",
)  # fmt: skip
HANDLERS = ("hitl", "judged", "deny 3", "guide 0", "confirm", "transform", "broken deny", "broken proceed", "none")
ANSWERS: tuple[Any, ...] = (
    "y", "y", "y", "y", "y", "n", "t", "no: not today", True, False, None, "", 0, [], {"approved": False},
    {"decision": "edit", "input": {"x": 7}}, {"decision": "edit", "input": {"x": "?"}}, {"decision": "approve"},
    {"decision": "reject", "reason": "later"}, "leave", "leave", "twice", "other id", "cancel",
)  # fmt: skip


def make_plan(choose: Callable[[Sequence[Any]], Any]) -> dict[str, Any]:
    """A plan, made of choices.

    Args:
        choose: One of a sequence.
    """
    return {
        "messages": [
            [[choose(TOOLS), choose((0, 1, 2, 3))] for _ in range(choose((1, 2, 2, 3)))]
            for _ in range(choose((1, 2, 3)))
        ],
        "hooks": [choose(HOOKS) for _ in range(choose((0, 1, 1, 2, 3)))],
        "handlers": [choose(HANDLERS) for _ in range(choose((0, 1, 1, 2, 3)))],
        "answers": [choose(ANSWERS) for _ in range(20)],
        "sequential": choose((False, False, True)),
    }


def plan_of(messages: Sequence[Any]) -> dict[str, Any]:
    """The plan that a conversation began with."""
    found: dict[str, Any] = json.loads(messages[0]["content"][0]["text"])
    return found


def script(scene: Any) -> Any:
    """The calls of the plan, message by message, then "done"."""
    planned = plan_of(scene.messages)["messages"]
    place = sum(any("toolUse" in block for block in m["content"]) for m in scene.messages if m["role"] == "assistant")
    if place >= len(planned):
        return "done"
    return [
        {"toolUse": {"toolUseId": f"{place}-{i}", "name": name, "input": {"x": x}}}
        for i, (name, x) in enumerate(planned[place])
    ]


def up(state: Any, key: str) -> int:
    """Count in a state."""
    count = (state.get(key) or 0) + 1
    state.set(key, count)
    return count


def _run(context: ToolContext, x: int) -> str:
    use = context.tool_use
    key = f"{RAN}{use['toolUseId']}"
    context.agent.state.set(key, [*(context.agent.state.get(key) or []), [use["name"], use["input"]]])
    return f"ran {x}"


@tool(context=True)
async def act(tool_context: ToolContext, x: int, more: int = 5) -> str:
    """Act."""
    return _run(tool_context, x)


@tool(context=True, idempotent=True)
async def again(tool_context: ToolContext, x: int) -> str:
    """Act; may be repeated."""
    return _run(tool_context, x)


@tool(context=True)
async def asks(tool_context: ToolContext, x: int) -> str:
    """Ask first."""
    answer = tool_context.interrupt("body", reason={"x": x})
    return _run(tool_context, x) if answer == "y" else f"not ran: {answer!r}"


def _hooks_of(event: Any) -> list[str]:
    return list(plan_of(event.agent.messages)["hooks"]) if event.agent.messages else []


def _input(event: BeforeToolCallEvent | AfterToolCallEvent) -> int:
    x = event.tool_use["input"].get("x")
    return x if isinstance(x, int) else -1


def _ask(event: BeforeToolCallEvent, name: str) -> None:
    answer = event.interrupt(name, reason={"x": _input(event)})
    if answer != "y":
        event.cancel_tool = f"refused {answer!r}"


def _swallow(event: BeforeToolCallEvent) -> None:
    try:
        event.interrupt("swallow")
    except BaseException:  # as careless code does
        return


def _fail(when: bool) -> None:
    if when:
        raise ValueError("broken")


def before_call(event: BeforeToolCallEvent) -> None:
    """What the plan's hooks do before a call, in their order."""
    for kind in _hooks_of(event):
        if kind == "ask":
            _ask(event, "ask")
        elif kind == "grow":
            event.tool_use["input"]["x"] = _input(event) + 10
        elif kind == "default":
            event.tool_use = {**event.tool_use, "input": {"x": _input(event)}}
        elif kind == "cancel 2" and _input(event) % 10 == 2:
            event.cancel_tool = ""
        elif kind == "raise 1":
            _fail(_input(event) % 10 == 1)
        elif kind == "raise on resume":
            _fail(up(event.agent.state, f"passes {event.tool_use['toolUseId']}") == 2)
        elif kind == "swallow":
            _swallow(event)
        elif kind == "rename" and event.tool_use["name"] == "again":
            event.tool_use["name"] = "act"


def second_hook(event: BeforeToolCallEvent) -> None:
    """A hook of its own, which may ask beside the first one."""
    if "second" in _hooks_of(event):
        _ask(event, "second")


def before_batch(event: BeforeToolsEvent) -> None:
    """The question about a batch."""
    if "batch" in _hooks_of(event) and event.interrupt("batch") != "y":
        event.cancel = "batch refused"


def after_call(event: AfterToolCallEvent) -> None:
    """Retries and failures after a call."""
    for kind in _hooks_of(event):
        if kind == "raise after 1":
            _fail(_input(event) % 10 == 1)
        elif kind == "retry once":
            event.retry = up(event.agent.state, f"ended {event.tool_use['toolUseId']}") == 1


def after_batch(event: AfterToolsEvent) -> None:
    """Ends the turn."""
    if "end turn" in _hooks_of(event):
        event.end_turn = "enough"


def around_model(event: BeforeModelCallEvent | AfterModelCallEvent) -> None:
    """Cancels after the second model call, or fails before the third."""
    if isinstance(event, AfterModelCallEvent):
        if "cancel" in _hooks_of(event) and up(event.agent.state, "answers") == 2:
            event.agent.cancel()
    elif "raise at model" in _hooks_of(event):
        _fail(up(event.agent.state, "model calls") == 3)


def at_end(event: AfterInvocationEvent) -> None:
    """Counts invocations, so that handlers' and agents' states are not empty."""
    up(event.agent.state, "invocations")


class Planned(InterventionHandler):
    """One kind of handler, if the plan has it."""

    def __init__(self, kind: str) -> None:
        self.kind, self.heard = kind, 0

    @property
    def name(self) -> str:
        return self.kind

    @property
    def on_error(self) -> Any:
        return {"broken deny": "deny", "broken proceed": "proceed", "none": "deny"}.get(self.kind, "throw")

    def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Any:
        if self.kind not in plan_of(event.agent.messages)["handlers"]:
            return Proceed()
        self.heard += 1
        if self.kind == "deny 3":
            return Deny(reason="3") if _input(event) % 10 == 3 else Proceed()
        if self.kind == "guide 0":
            return Guide(feedback="not 0") if _input(event) % 10 == 0 else Proceed()
        if self.kind == "confirm":
            return Confirm(prompt="confirm?", evaluate=lambda response: response in ("y", True))
        if self.kind == "transform":
            return Transform(apply=lambda e: e.tool_use["input"].update(x=_input(e) + 20))
        if self.kind == "none":
            return None
        raise ConnectionError("down")


class PlannedHuman(HumanInTheLoop):
    """`HumanInTheLoop`, if the plan has it: with trust, or with a judge that changes its mind."""

    def __init__(self, kind: str) -> None:
        options: dict[str, Any] = {"enable_trust": True} if kind == "hitl" else {"classifier": self.judge}
        super().__init__(**options)
        self.kind = kind
        self.name = kind

    def judge(self, event: BeforeToolCallEvent, **kwargs: Any) -> ClassifierResult:
        """Risky for odd inputs, and only when first heard."""
        first = up(event.agent.state, f"judged {event.tool_use['toolUseId']}") == 1
        return ClassifierResult(requires_human_in_the_loop=first and _input(event) % 2 == 1, reason="odd")

    async def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Any:
        if self.kind not in plan_of(event.agent.messages)["handlers"]:
            return Proceed()
        return await super().before_tool_call(event, **kwargs)


def planned(*, sequential: bool = False) -> Agent:
    """The agent of every plan."""
    handlers: list[InterventionHandler] = [PlannedHuman("hitl"), PlannedHuman("judged")]
    handlers += [Planned(kind) for kind in HANDLERS if kind not in ("hitl", "judged")]
    return Agent(
        ScriptedModel(script),
        tools=[act, again, asks],
        hooks=[before_call, second_hook, before_batch, after_call, after_batch, around_model, at_end],
        interventions=handlers,
        tool_executor=SequentialToolExecutor() if sequential else ConcurrentToolExecutor(),
    )


@durable("planned")
def concurrent() -> Agent:
    """Served: calls side by side."""
    return planned()


@durable("planned-sequential")
def sequential() -> Agent:
    """Served: one call after the other."""
    return planned(sequential=True)
