"""`HumanInTheLoop`: tool calls wait for a person, except those that are allowed or trusted."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.hooks.events import BeforeToolCallEvent
from countersign.agent_core.interrupts import approves
from countersign.agent_core.interventions.actions import Confirm, Evaluate, Proceed
from countersign.agent_core.interventions.handler import InterventionHandler

TRUSTED_TOOLS_KEY = "countersign:trusted-tools"
"""Key in `agent.state` of the names that a person said to trust in this session."""

_TRUST = frozenset({"t", "trust"})


class HumanInTheLoop(InterventionHandler):
    """Ask a person before a tool runs.

    Args:
        allowed_tools: Tools that run without asking: names, "*" for all, "!name" for one that
            always asks and can't be trusted.
        enable_trust: True lets an answer "t" or "trust" approve the call and all later calls of
            that tool in this session.
        evaluate_trust: Whether an answer means trust; sync or async. Heard only with `enable_trust`.
        evaluate: Whether an answer approves; sync or async. True, "y" and "yes" do if None.

    Raises:
        AgentDefinitionError: If `allowed_tools` is not a list of names.
    """

    name = "countersign:human-in-the-loop"

    def __init__(
        self,
        *,
        allowed_tools: Sequence[str] | None = None,
        enable_trust: bool = False,
        evaluate_trust: Evaluate | None = None,
        evaluate: Evaluate | None = None,
    ) -> None:
        names = allowed_tools or []
        if isinstance(names, str) or not all(isinstance(item, str) and item for item in names):
            raise AgentDefinitionError(f"allowed_tools must be a list of tool names, not {allowed_tools!r}")
        self._allowed = frozenset(names)
        self._enable_trust = enable_trust
        self._evaluate_trust = evaluate_trust or means_trust
        self._evaluate = evaluate or approves

    def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Proceed | Confirm:
        """Proceed if the tool is allowed or trusted; else ask."""
        tool = event.tool_use["name"]
        # A hook may have put another tool behind the call: neither name may need an approval.
        names = {tool, event.selected_tool.tool_name if event.selected_tool is not None else tool}
        if not any(self._needs_approval(event, name) for name in names):
            return Proceed()
        shown = json.dumps(event.tool_use["input"], ensure_ascii=False)
        trustable = self._enable_trust and len(names) == 1 and f"!{tool}" not in self._allowed
        answers = {"approve": "y", "deny": "n", **({"trust": "t"} if trustable else {})}
        return Confirm(
            prompt=f'Tool "{tool}" requires human approval. Input: {shown}',
            evaluate=self._judge(event, tool, trustable),
            answers=answers,
        )

    def _needs_approval(self, event: BeforeToolCallEvent, tool: str) -> bool:
        if f"!{tool}" in self._allowed:
            return True
        if self._enable_trust and tool in (event.agent.state.get(TRUSTED_TOOLS_KEY) or []):
            return False
        return "*" not in self._allowed and tool not in self._allowed

    def _judge(self, event: BeforeToolCallEvent, tool: str, trustable: bool) -> Callable[[Any], Awaitable[bool]]:
        async def judge(response: Any) -> bool:
            if trustable and await _resolved(self._evaluate_trust(response)):
                trusted = event.agent.state.get(TRUSTED_TOOLS_KEY) or []
                event.agent.state.set(TRUSTED_TOOLS_KEY, sorted({*trusted, tool}))
                return True
            return await _resolved(self._evaluate(response))

        return judge


def means_trust(response: Any) -> bool:
    """True for "t" and "trust" (trimmed, any case)."""
    return isinstance(response, str) and response.strip().lower() in _TRUST


async def _resolved(verdict: bool | Awaitable[bool]) -> bool:
    return bool(await verdict if isinstance(verdict, Awaitable) else verdict)
