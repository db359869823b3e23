"""When the conversation manager is called, and what it is held to.

It is called as a turn ends, before a model call if it wants to be, and when the model refuses the conversation
as too long. Never while a batch of calls is open: who answers a question should find what led to it.
"""

import copy
from collections.abc import Callable
from typing import Any, Final

from countersign.agent_core.conversation_managers import (
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.errors import (
    CallbackError,
    ContextWindowOverflowException,
    ConversationManagerError,
)
from countersign.agent_core.json_values import JsonObject, check_json, json_size
from countersign.agent_core.messages import Message, add_usage, history_faults, no_usage, shape_fault, tool_uses
from countersign.agent_core.wire import CycleOutcome

REDUCTION_LIMIT = 30
"""How often one model call may be tried with a smaller conversation."""

CONVERSATION_REDUCED: Final = "conversation_reduced"
CONVERSATION_RESTORED: Final = "conversation_restored"
"""The lines of the audit trail."""

_NEVER_CHANGE_A_MESSAGE = (SlidingWindowConversationManager, SummarizingConversationManager)
"""They put new messages in the place of old ones, so they need no copies to work on."""


class Managing:
    """One cycle's use of its agent's conversation manager.

    Args:
        context: The cycle.
    """

    def __init__(self, context: CycleContext) -> None:
        self._context = context
        self._agent = context.agent
        self._manager = context.agent.conversation_manager
        self._name = type(self._manager).__name__
        self._idle = type(self._manager) is NullConversationManager
        self._asked = False
        self._reductions = 0
        self._at_first: list[Message] = []
        self._removed_at_first = 0

    async def before_model_call(self) -> None:
        """Bring the conversation to its size if the manager wants that before this model call."""
        if self._asked or self._idle:
            return
        self._asked = True
        due = self._manager.due_before_model_call
        if await self._context.runner.user_call(f"{self._name}.due_before_model_call", due, None):
            await self._apply("before_model_call")

    async def after_turn(self, outcome: CycleOutcome) -> None:
        """Bring the conversation to its size, unless a batch is open.

        Args:
            outcome: How the turn ended, or paused.

        Raises:
            CallbackError: If the manager fails; the conversation is as it was.
        """
        if outcome.stop_reason == "interrupt" or self._idle:
            return
        if not (self._agent.messages and tool_uses(self._agent.messages[-1])):
            await self._apply("turn_ended")

    async def _apply(self, why: str) -> None:
        await self._call("apply_management", why, lambda: self._manager.apply_management(self._agent))

    async def after_overflow(self, error: ContextWindowOverflowException) -> None:
        """Make the conversation smaller, so that the model can be called again.

        Raises:
            ContextWindowOverflowException: If it can't be made small enough, or the manager never stops. What went
                for this model call is back then: it would be lost in vain.
            CallbackError: If the manager fails; likewise.
        """
        if self._reductions == 0:
            self._at_first = list(self._agent.messages)
            self._removed_at_first = self._manager.removed_message_count
        try:
            await self._reduce(error)
        except (CallbackError, ContextWindowOverflowException):
            self._restore()
            raise

    def _restore(self) -> None:
        messages = self._agent.messages
        if len(messages) != len(self._at_first) or messages != self._at_first:
            self._manager.removed_message_count = self._removed_at_first
            messages[:] = self._at_first
            self._context.note(CONVERSATION_RESTORED, left=len(messages))

    async def _reduce(self, error: ContextWindowOverflowException) -> None:
        if self._idle:
            raise ContextWindowOverflowException(
                f"{error}. Nothing was cut. To let the agent go on: give it a conversation_manager (deploy it; this "
                "session takes it with its next prompt), or use a model that takes more"
            ) from error
        if self._reductions >= REDUCTION_LIMIT:
            raise ContextWindowOverflowException(
                f"{error}. {self._name} has made the conversation smaller {self._reductions} times for one model "
                "call; let its reduce_context take away more at a time"
            ) from error
        self._reductions += 1
        before = json_size(self._agent.messages)
        try:
            await self._call("reduce_context", "overflow", lambda: self._manager.reduce_context(self._agent, e=error))
        except CallbackError as failure:
            if isinstance(failure.cause, ContextWindowOverflowException):
                raise failure.cause from error
            raise
        if json_size(self._agent.messages) >= before:
            raise ContextWindowOverflowException(
                f"{error}. {self._name}.reduce_context has not made the conversation smaller"
            ) from error

    async def _call(self, method: str, why: str, call: Callable[[], Any]) -> None:
        """Call the manager; what it leaves is valid, or it is as it was."""
        agent, origin = self._agent, f"{self._name}.{method}"
        before = list(agent.messages)
        was_valid = not history_faults(before)
        copies: list[Message] = []
        if type(self._manager) not in _NEVER_CHANGE_A_MESSAGE:
            copies = copy.deepcopy(before)
            agent.messages[:] = copies
        try:
            await self._context.runner.user_call(origin, call, None)
            fault = _fault_of_report(self._manager.report) or (_fault(agent.messages) if was_valid else None)
            if fault is not None:
                raise CallbackError(origin, ConversationManagerError(f"{fault}. The conversation is as it was before"))
        except BaseException:
            agent.messages[:] = before
            if _fault_of_report(self._manager.report) is None:
                self._take_report()
            raise
        report = self._take_report()
        # What did not change is the very message that it was: by that it is known on its way, and not sent again.
        known = {id(copied): message for copied, message in zip(copies, before, strict=False)}
        agent.messages[:] = [
            known[id(message)] if known.get(id(message)) == message else message for message in agent.messages
        ]
        if report or len(agent.messages) != len(before) or agent.messages != before:
            self._note(why, before, report)

    def _take_report(self) -> JsonObject:
        """What the manager reports; the tokens in it are added to the turn's."""
        report, self._manager.report = dict(self._manager.report), {}
        progress = self._context.progress
        progress.usage = add_usage(progress.usage, {**no_usage(), **report.get("usage", {})})
        progress.latency_ms += report.pop("latency_ms", 0)
        return report

    def _note(self, why: str, before: list[Message], report: JsonObject) -> None:
        left = len(self._agent.messages)
        detail = {"removed": max(0, len(before) - left), "left": left, **report}
        self._context.note(CONVERSATION_REDUCED, manager=self._name, why=why, **detail)


def _fault_of_report(report: Any) -> str | None:
    """Why something can't stand in the audit trail; None if it can."""
    try:
        check_json(report, "the manager's report")
        counts = [report.get("latency_ms", 0), *report.get("usage", {}).values()]
    except (TypeError, AttributeError) as error:
        return f"the manager's report can't be read: {error}"
    if not all(isinstance(count, int) for count in counts):
        return f"usage and latency_ms of the manager's report must be whole numbers, not {counts!r:.100}"
    return None


def _fault(messages: object) -> str | None:
    """Why something can't be a conversation that a model takes; None if it can."""
    fault = shape_fault(messages)
    if fault is not None:
        return fault
    assert isinstance(messages, list)  # or it would have a fault
    empty = next((place for place, message in enumerate(messages) if not message["content"]), None)
    if empty is not None:
        return f"message {empty} has no content"
    faults = history_faults(messages)
    return faults[0] if faults else None
