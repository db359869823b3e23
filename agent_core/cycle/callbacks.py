"""Calls user code: hooks and handlers, one at a time, with every way it can go wrong accounted for."""

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from countersign.agent_core.asking import Asking
from countersign.agent_core.effects import Effects
from countersign.agent_core.errors import CallbackError, PolicyViolationError
from countersign.agent_core.hooks.events import (
    BeforeToolCallEvent,
    BeforeToolsEvent,
    HookEvent,
    InterruptibleEvent,
    MessageAddedEvent,
)
from countersign.agent_core.hooks.registry import HookCallback, callback_name
from countersign.agent_core.interrupts import InterruptException
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.messages import Message, unanswered
from countersign.agent_core.settling import settled

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

logger = logging.getLogger(__name__)


class CallbackRunner:
    """Runs the callbacks of an agent's events.

    Args:
        agent: The agent whose callbacks are called.
        effects: Guards each callback.
        invocation_state: What they may write into, as it is sent on.
        guides: How often handlers have guided the model in this turn so far.
    """

    def __init__(self, agent: "Agent", effects: Effects, invocation_state: JsonObject, guides: int = 0) -> None:
        self.agent = agent
        self.effects = effects
        self.invocation_state = invocation_state
        self.guides = guides

    async def add_message(self, message: Message) -> None:
        """Add a message to the conversation, and say so."""
        self.agent.messages.append(message)
        await self.fire(MessageAddedEvent(self.agent, message))

    def put_results(self, results: Message, asking: Message) -> None:
        """Put the results of a message's calls right behind it; it is put back if a hook has removed it."""
        messages = self.agent.messages
        place = unanswered(messages, asking)
        if place is None:
            messages.append(copy.deepcopy(asking))
            place = len(messages)
        messages.insert(place, results)

    async def fire(self, event: HookEvent, asking: Asking | None = None) -> None:
        """Call every callback of an event.

        Args:
            event: The event.
            asking: Answers and records its interrupts; None if it is not interruptible.

        Raises:
            CallbackError: If a callback raises; the ones after it are not called.
        """
        if asking is not None and isinstance(event, InterruptibleEvent):
            event.attach(asking)
        for place, callback in enumerate(self.agent.hooks.callbacks_for(event)):
            if asking is not None:
                asking.callback = f"{place}"  # a function that is registered twice is two callbacks
            await self._one(callback, event, asking)

    async def _one(self, callback: HookCallback, event: HookEvent, asking: Asking | None) -> None:
        dispatch = getattr(callback, "__countersign_dispatch__", None)
        if dispatch is not None:
            await dispatch(event, self, asking)
            return
        name = callback_name(callback)
        if asking is None:
            await self.user_call(name, lambda: callback(event), None)
            return
        cancelled, asked_before = _cancellation(event), len(asking.asked)
        await self.user_call(name, lambda: callback(event), asking)
        if len(asking.asked) > asked_before:
            # A bare `except` around the interrupt may have cancelled: it decided without the answer.
            _restore_cancellation(event, cancelled)
        elif _cancellation(event) != cancelled:
            asking.cancelled_by = name

    async def user_call(self, name: str, call: Callable[[], Any], asking: Asking | None) -> Any:
        """Call user code once.

        Returns:
            What it returned, or None if it asked a question.

        Raises:
            CallbackError: If it raised, or left something in `invocation_state` that is not JSON.
        """
        result = await self._call(name, call, asking)
        self._check_state(name)
        return result

    def _check_state(self, name: str) -> None:
        """Take out of `invocation_state` what could not be sent on, as an error of the code that wrote it.

        Raises:
            CallbackError: If something was.
        """
        fault: TypeError | None = None
        for key in list(self.invocation_state):
            try:
                check_json({key: self.invocation_state[key]}, "invocation_state")
            except TypeError as error:
                fault = error
                del self.invocation_state[key]
        if fault is not None:
            raise CallbackError(name, fault)

    async def _call(self, name: str, call: Callable[[], Any], asking: Asking | None) -> Any:
        asked_before = len(asking.asked) if asking else 0
        try:
            with self.effects.guard(name):
                return await settled(call())
        except InterruptException as interrupt:
            if asking is None or not asking.asked:
                raise CallbackError(
                    name, RuntimeError(f"interrupt {interrupt.name!r} was raised without asking: use event.interrupt()")
                ) from interrupt
            return None
        except CallbackError:
            raise
        except BaseException as error:
            if isinstance(error, (asyncio.CancelledError, GeneratorExit)) and _cancelled():
                raise
            paused = asking is not None and len(asking.asked) > asked_before
            if paused and not isinstance(error, PolicyViolationError):
                return None  # it swallowed its interrupt and stumbled over the missing answer; it has asked
            logger.warning("callback=<%s> | raised", name, exc_info=error)
            raise CallbackError(name, error) from error


def _cancelled() -> bool:
    """True if this very task is being cancelled: user code may raise the same by itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _cancellation(event: HookEvent) -> bool | str:
    if isinstance(event, BeforeToolCallEvent):
        return event.cancel_tool
    return event.cancel if isinstance(event, BeforeToolsEvent) else False


def _restore_cancellation(event: HookEvent, value: bool | str) -> None:
    if isinstance(event, BeforeToolCallEvent):
        event.cancel_tool = value
    elif isinstance(event, BeforeToolsEvent):
        event.cancel = value
