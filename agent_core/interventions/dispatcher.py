"""Runs the handlers of one event in order and applies their actions: deny > confirm > guide > transform.

All handlers are heard before a person is asked, so that nobody is asked about a call that a later
handler blocks anyway.
"""

import difflib
import inspect
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from countersign.agent_core.asking import Asking
from countersign.agent_core.errors import AgentDefinitionError, GuideLimitError
from countersign.agent_core.hooks.events import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookEvent,
)
from countersign.agent_core.hooks.registry import HookOrder, HookRegistry
from countersign.agent_core.interventions.actions import (
    ACTIONS,
    Confirm,
    Deny,
    Guide,
    InterventionAction,
    Proceed,
    Transform,
)
from countersign.agent_core.interventions.confirming import confirmed
from countersign.agent_core.interventions.handler import InterventionHandler
from countersign.agent_core.interventions.handler_errors import with_policy
from countersign.agent_core.messages import guidance_message

if TYPE_CHECKING:
    from countersign.agent_core.cycle.callbacks import CallbackRunner

logger = logging.getLogger(__name__)

GUIDE_LIMIT = 10
"""Guides on model calls that one turn may take before it fails."""


@dataclass(frozen=True)
class Lifecycle:
    """What one lifecycle method may return, and when its handlers are called."""

    method: str
    event: type[HookEvent]
    order: int
    allowed: tuple[type, ...]


LIFECYCLE = (
    Lifecycle("before_invocation", BeforeInvocationEvent, HookOrder.INTERVENTION_INPUT, (Deny, Guide, Transform)),
    Lifecycle("before_tool_call", BeforeToolCallEvent, HookOrder.INTERVENTION_INPUT, (Deny, Guide, Confirm, Transform)),
    Lifecycle("after_tool_call", AfterToolCallEvent, HookOrder.INTERVENTION_OUTPUT, (Transform,)),
    Lifecycle("before_model_call", BeforeModelCallEvent, HookOrder.INTERVENTION_INPUT, (Deny, Guide, Transform)),
    Lifecycle("after_model_call", AfterModelCallEvent, HookOrder.INTERVENTION_OUTPUT, (Guide, Transform)),
)


@dataclass
class _Verdicts:
    """What the handlers of one event returned, as far as it is not applied at once."""

    deny: tuple[str, str] | None = None
    """Which handler denied, and why."""
    confirms: list[tuple[InterventionHandler, Confirm]] = field(default_factory=list)
    guides: list[tuple[str, str]] = field(default_factory=list)
    asked: bool = False
    """True if a handler asked by `event.interrupt` itself: Confirms have their turn when it is answered."""


METHODS = tuple(lifecycle.method for lifecycle in LIFECYCLE)

NEAR = 0.75
"""How alike (0 to 1) a method's name is to one of these that is taken for a misspelling of it."""


def register_handlers(handlers: Sequence[InterventionHandler], registry: HookRegistry) -> None:
    """Hook handlers into the events of the methods that they override.

    Raises:
        ValueError: If two have the same name.
        AgentDefinitionError: If one is not an `InterventionHandler`, has no usable name, or would never be heard.
    """
    seen: set[str] = set()
    for handler in handlers:
        if not isinstance(handler, InterventionHandler):
            raise AgentDefinitionError(f"{handler!r} is not an InterventionHandler")
        if not isinstance(handler.name, str) or not handler.name:
            raise AgentDefinitionError(f"the name of {type(handler).__name__} must be non-empty text")
        if handler.name in seen:
            raise ValueError(f"Duplicate intervention handler name: '{handler.name}'")
        seen.add(handler.name)
    for handler in handlers:
        misspelt = _misspelt(handler)
        if misspelt is not None:
            raise AgentDefinitionError(
                f"handler {handler.name!r} ({type(handler).__name__}) would never be heard: its method {misspelt!r} is "
                f"none of {', '.join(METHODS)}"
            )
    for lifecycle in LIFECYCLE:
        overriding = [handler for handler in handlers if _overrides(handler, lifecycle.method)]
        if overriding:
            registry.add_callback(lifecycle.event, _Dispatch(lifecycle, overriding), order=lifecycle.order)


def _misspelt(handler: InterventionHandler) -> str | None:
    """A method that looks like one of the lifecycle, of a handler that overrides none of them."""
    if any(_overrides(handler, method) for method in METHODS):
        return None
    own = set(dir(type(handler))) - set(dir(InterventionHandler))
    return next((name for name in sorted(own) if difflib.get_close_matches(name, METHODS, 1, NEAR)), None)


def _overrides(handler: InterventionHandler, method: str) -> bool:
    return getattr(type(handler), method) is not getattr(InterventionHandler, method)


class _Dispatch:
    """The callback that stands for all handlers of one lifecycle method."""

    def __init__(self, lifecycle: Lifecycle, handlers: Sequence[InterventionHandler]) -> None:
        self._lifecycle = lifecycle
        self._handlers = handlers

    def __call__(self, event: HookEvent) -> Awaitable[None] | None:
        raise RuntimeError("handlers are dispatched by the cycle")

    async def __countersign_dispatch__(self, event: HookEvent, runner: "CallbackRunner", asking: Asking | None) -> None:
        verdicts = _Verdicts()
        for handler in self._handlers:
            action = await self._hear(handler, event, runner, asking, verdicts)
            if isinstance(action, Deny):
                verdicts.deny = handler.name, action.reason
                break
            if isinstance(action, Confirm):
                verdicts.confirms.append((handler, action))
            elif isinstance(action, Guide):
                verdicts.guides.append((handler.name, action.feedback))
        await self._apply(event, verdicts, runner, asking)

    async def _hear(
        self,
        handler: InterventionHandler,
        event: HookEvent,
        runner: "CallbackRunner",
        asking: Asking | None,
        verdicts: _Verdicts,
    ) -> InterventionAction | None:
        """One handler's action; a Transform is applied at once so that later handlers see it.

        None if it has no effect, or if the handler asked a person itself: it decides when it has the answer.
        """
        method = self._lifecycle.method
        name = f"{type(handler).__name__}.{method}"

        async def call() -> InterventionAction | None:
            action = getattr(handler, method)(event)
            if inspect.isawaitable(action):
                action = await action
            if not isinstance(action, ACTIONS):
                raise TypeError(
                    f"handler '{handler.name}.{method}' returned {action!r}; expected an InterventionAction"
                )
            if not isinstance(action, (Proceed, *self._lifecycle.allowed)):
                logger.warning("handler=<%s>, event=<%s> | %s has no effect", handler.name, method, action.type)
                return None
            if isinstance(action, Transform):
                applied = action.apply(event)
                if inspect.isawaitable(applied):
                    await applied
            return action

        asked_before = 0
        if asking is not None:
            asking.callback, asked_before = handler.name, len(asking.asked)
            if isinstance(event, BeforeToolCallEvent):
                asking.heard.append((event.tool_use["name"], event.selected_tool))
        action: InterventionAction | None = await with_policy(handler, name, call, event, runner, asking)
        if asking is not None and len(asking.asked) > asked_before:
            verdicts.asked = True
            return None
        return action

    async def _apply(
        self, event: HookEvent, verdicts: _Verdicts, runner: "CallbackRunner", asking: Asking | None
    ) -> None:
        """Apply what is left to apply, the strongest first."""
        if asking is not None and (verdicts.deny or verdicts.guides):
            names = verdicts.deny[:1] if verdicts.deny else [name for name, _ in verdicts.guides]
            asking.cancelled_by = ", ".join(names)
        if verdicts.deny is not None:
            _cancel(event, f"DENIED: {verdicts.deny[1]}")
            return
        if verdicts.guides:
            await _guide(event, "\n".join(f"[{name}] {feedback}" for name, feedback in verdicts.guides), runner)
        if verdicts.asked or asking is None:
            return
        if isinstance(event, BeforeToolCallEvent) and event.cancel_tool is False:
            for handler, confirm in verdicts.confirms:
                if not await confirmed(event, handler, confirm, runner, asking):
                    return


def _cancel(event: HookEvent, text: str) -> None:
    if isinstance(event, BeforeToolCallEvent):
        event.cancel_tool = text
    elif isinstance(event, (BeforeInvocationEvent, BeforeModelCallEvent)):
        event.cancel = text


async def _guide(event: HookEvent, feedback: str, runner: "CallbackRunner") -> None:
    if isinstance(event, (BeforeToolCallEvent, BeforeInvocationEvent)):
        _cancel(event, f"GUIDANCE: {feedback}")
        return
    runner.guides += 1
    if runner.guides > GUIDE_LIMIT:
        raise GuideLimitError(
            f"handlers guided the model more than {GUIDE_LIMIT} times in one turn ({feedback!r:.200}); "
            "let the handler give up after some tries"
        )
    await runner.add_message(guidance_message(feedback))
    if isinstance(event, AfterModelCallEvent):
        event.retry = True
