"""What an error in a handler's code means: the handler's `on_error`."""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from countersign.agent_core.asking import Asking
from countersign.agent_core.errors import CallbackError, PolicyViolationError
from countersign.agent_core.hooks.events import AfterModelCallEvent, AfterToolCallEvent, HookEvent
from countersign.agent_core.interventions.actions import Deny
from countersign.agent_core.interventions.handler import InterventionHandler
from countersign.agent_core.messages import assistant_text, error_result

if TYPE_CHECKING:
    from countersign.agent_core.cycle.callbacks import CallbackRunner

logger = logging.getLogger(__name__)


async def with_policy(
    handler: InterventionHandler,
    name: str,
    call: Callable[[], Awaitable[Any]],
    event: HookEvent,
    runner: "CallbackRunner",
    asking: Asking | None,
) -> Any:
    """Call a handler's code.

    Args:
        handler: Whose code it is.
        name: What errors call it, like "Limits.before_tool_call".
        call: The code.
        event: What it is called for.
        runner: Runs it.
        asking: Takes what it asks, if it may.

    Returns:
        What the code returns. After an error: None if it does not count, or if what came back is withheld; else a Deny.

    Raises:
        CallbackError: If an error of this handler fails the turn.
    """
    try:
        return await runner.user_call(name, call, asking)
    except CallbackError as error:
        policy = handler.on_error
        if isinstance(error.cause, PolicyViolationError) or policy not in ("proceed", "deny"):
            raise
        logger.warning("handler=<%s>, on_error=<%s> | %s", handler.name, policy, error.cause)
        if policy == "proceed":
            return None
        if isinstance(event, (AfterToolCallEvent, AfterModelCallEvent)):
            _withhold(event, handler.name, error.cause)
            return None
        return Deny(reason=f"Handler threw: {error.cause}")


def _withhold(event: AfterToolCallEvent | AfterModelCallEvent, handler: str, cause: BaseException) -> None:
    """Fail closed after the fact: what came back does not reach the model or the user."""
    text = f"DENIED: withheld because handler '{handler}' failed: {cause}"
    if isinstance(event, AfterToolCallEvent):
        event.result = error_result(event.tool_use["toolUseId"], text)
    elif event.stop_response is not None:
        event.stop_response.message = assistant_text(text)
        event.stop_response.stop_reason = "end_turn"
