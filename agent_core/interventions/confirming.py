"""Puts a handler's Confirm to a person and judges the answer."""

import copy
from typing import TYPE_CHECKING, Any

from countersign.agent_core.asking import Asking
from countersign.agent_core.hooks.events import BeforeToolCallEvent
from countersign.agent_core.interventions.actions import Confirm, Deny
from countersign.agent_core.interventions.handler import InterventionHandler
from countersign.agent_core.interventions.handler_errors import with_policy
from countersign.agent_core.json_values import check_json
from countersign.agent_core.plain_answers import approves
from countersign.agent_core.wire import InlineAnswer

if TYPE_CHECKING:
    from countersign.agent_core.cycle.callbacks import CallbackRunner


async def confirmed(
    event: BeforeToolCallEvent,
    handler: InterventionHandler,
    confirm: Confirm,
    runner: "CallbackRunner",
    asking: Asking,
) -> bool:
    """Ask a person, or judge their answer. A call that is not confirmed is cancelled.

    Args:
        event: Of the call.
        handler: Who wants it confirmed.
        confirm: With what question.
        runner: Runs the handler's code.
        asking: Takes the question.

    Returns:
        True if the call may go on to the next Confirm.
    """
    asking.callback = handler.name
    responses: list[Any] = []

    async def ask() -> bool:
        if confirm.ask is not None:
            answer = await asking.inline_answer(handler.name, event.as_it_stands(), confirm.ask)
            responses.append(copy.deepcopy(answer.response))
            return answer.response is not None and await _judged_inline(answer, handler, confirm, asking)
        response = event.interrupt(handler.name, confirm.prompt, confirm.response, answers=confirm.answers)
        responses.append(response)
        return await asking.judge(handler.name, response, confirm.evaluate or approves)

    asked_before = len(asking.asked)
    name = f"{type(handler).__name__}.evaluate"
    verdict = await with_policy(handler, name, ask, event, runner, asking)
    if len(asking.asked) > asked_before:
        return False
    asking.cancelled_by = handler.name if verdict is False or isinstance(verdict, Deny) else asking.cancelled_by
    if isinstance(verdict, Deny):
        event.cancel_tool = f"DENIED: {verdict.reason}"
        return False
    if verdict is False:
        event.cancel_tool = f"CONFIRMATION_FAILED: {confirm.prompt}{_words(responses[-1])}"
        return False
    return True


async def _judged_inline(answer: InlineAnswer, handler: InterventionHandler, confirm: Confirm, asking: Asking) -> bool:
    """Whether an answer that was given inline approves; judged once."""
    if answer.verdict is None:
        approved = await asking.judge(handler.name, copy.deepcopy(answer.response), confirm.evaluate or approves)
        own = asking.edit is not None and asking.edit[0] == handler.name  # and not of a handler before it
        verdict = {"approved": approved, **({"edit": asking.edit[1]} if own and asking.edit else {})}
        check_json(verdict, f"the verdict of {handler.name}")
        answer.verdict = verdict
    if "edit" in answer.verdict:
        asking.edit = (handler.name, copy.deepcopy(answer.verdict["edit"]))
    asking.inline[handler.name] = answer
    return answer.approved


def _words(response: Any) -> str:
    """A refusal's own words, for the model; nothing for a bare yes or no."""
    if isinstance(response, dict) and isinstance(response.get("reason"), str):
        return f"\n{response['reason']}"
    if isinstance(response, str) and len(response.split()) > 1:
        return f"\n{response.strip()}"
    return ""
