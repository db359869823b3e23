"""Approvers' edits: an approval of another input, which takes the place of the model's."""

from typing import Any

from countersign.agent_core.approvals import Ask, Ledger
from countersign.agent_core.asking import Asking
from countersign.agent_core.audit_values import bounded
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.cycle.decision import Asked, Decision, Refused
from countersign.agent_core.errors import ToolInputError
from countersign.agent_core.json_values import canonical_json, digest
from countersign.agent_core.messages import ToolUse, error_result
from countersign.agent_core.wire import Pending


class Edits:
    """What approvers put in place of inputs.

    Args:
        context: The cycle.
        pending: The batch.
        ledger: Its questions.
    """

    def __init__(self, context: CycleContext, pending: Pending, ledger: Ledger) -> None:
        self._context, self._pending, self._ledger = context, pending, ledger

    def changes(self, use: ToolUse, asking: Asking, name: str, given: Any) -> bool:
        """False for an edit that answers no question and leaves the call as it stands: that is an approval.

        Args:
            use: The call as it stands.
            asking: What was asked about it.
            name: Who got the edit.
            given: The input.
        """
        tool = self._context.agent.tool_registry.get(str(use["name"]))
        if tool is None or name in asking.consumed:
            return True
        try:
            return canonical_json(tool.canonical_input(given)) != canonical_json(use["input"])
        except ToolInputError:
            return True

    def take(self, index: int, use: ToolUse, asking: Asking, name: str, given: Any) -> Decision | None:
        """Put an approver's input in place of the model's: everybody must be heard again about that call.

        Args:
            index: The call's place in the model's message.
            use: The call as it stands.
            asking: What was asked about it.
            name: Who got the edit.
            given: The input.

        Returns:
            None, or what becomes of the call if the input can't be used.
        """
        question, tool = asking.consumed.get(name), self._context.agent.tool_registry.get(str(use["name"]))
        try:
            if tool is None:
                raise ToolInputError(f"there is no tool {use['name']!r}")
            canonical = tool.canonical_input(given)
        except ToolInputError as error:
            self._context.note("edit_refused", index=index, tool=use["name"], reason=str(error), **bounded(input=given))
            if question is None:
                text = f"Not run: a person approved it with another input, which can't be used: {error}"
                return Refused(error_result(use["toolUseId"], text), use, cancel_message=text)
            ask = Ask(question.name, question.reason, question.answers)
            again = self._ledger.open("call", index, ask, question.calls, fresh=True)
            again.fault = f"The answer's input can't be used: {error}"
            return Asked([again])
        self._context.note("input_edited", index=index, tool=tool.tool_name, question=question.id if question else name,
                           **bounded(before=use["input"], after=canonical))  # fmt: skip
        self._pending.edits[index] = canonical
        if question is not None:
            question.edited, question.edited_tool, question.verdict = canonical, tool.tool_name, True
        else:
            stands = digest([use["name"], canonical, tool.tool_name])
            self._ledger.keep_inline(index, name, stands, {"decision": "approve"}).verdict = {"approved": True}
        return None
