"""Risk classifiers for `HumanInTheLoop`: does this call need a person?

Both judges work to the same criteria. They do I/O, so durably they run as steps; what they say is
JSON, recorded once for each call. Whatever is no clear "no" means that a person is asked.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from countersign.agent_core.decisions import DecisionModel
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.judging import VERDICT, JudgeModel, only_verdict
from countersign.agent_core.model_making import ModelSource
from countersign.agent_core.tools.schema import ToolSpec

RISK_CRITERIA = """\
A person must approve a call that
- destroys something or can't be undone: deletes, overwrites, drops, revokes;
- changes production or anything that others share;
- reads, sends or stores secrets, personal or financial data, even if it only reads;
- reaches people or systems outside: mail, messages, posts, payments, orders;
- touches many records, users or machines at once.
Nobody needs to approve a call that
- only reads, and nothing sensitive;
- stays in local or temporary places;
- can be undone easily, or touches one unimportant thing.
Judge this very call with these very arguments, and what could go wrong. If in doubt, a person must approve."""

_VERDICT: ToolSpec = {
    "name": VERDICT,
    "description": "Say whether a person must approve the call.",
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {
                "requires_approval": {"type": "boolean"},
                "reason": {"type": "string", "description": "why or why not, in at most ten words"},
            },
            "required": ["requires_approval", "reason"],
        }
    },
}

_ROLE = "You judge the risk of tool calls that an AI agent wants to make."
_TASK = "Call the tool `verdict` exactly once, with your verdict and a reason of at most ten words."
_QUESTION = "requires_approval"


@dataclass(frozen=True)
class ClassifierResult:
    """A classifier's verdict on one call.

    Attributes:
        requires_human_in_the_loop: Whether a person must approve it.
        reason: Why; shown in the question.
    """

    requires_human_in_the_loop: bool
    reason: str | None = None


@dataclass(frozen=True)
class LLMClassifierConfig:
    """The built-in LLM judge, with other criteria or another model.

    Attributes:
        system_prompt: Criteria in place of the built-in ones.
        model: What judges; the agent's own model if None.
    """

    system_prompt: str | None = None
    model: ModelSource | None = None


Classifier: TypeAlias = Callable[..., ClassifierResult | Awaitable[ClassifierResult]]
"""Called with the event, in the cycle like any policy code; I/O belongs into a step."""


def asked_call(tool: str, value: Any) -> JsonObject:
    """A call as the judges see it."""
    return {"tool": tool, "input": value}


class LLMJudge:
    """Asks a model for a verdict.

    Args:
        config: Criteria and model.
    """

    def __init__(self, config: LLMClassifierConfig) -> None:
        self._config = config
        self._model = JudgeModel(config.model, "the classifier (pass LLMClassifierConfig(model=...))")

    async def verdict(self, call: JsonObject, fallback: ModelSource | None) -> JsonObject:
        """Judge a call.

        Args:
            call: See `asked_call`.
            fallback: The agent's model.

        Returns:
            `{"requires": bool, "reason": text or None, "usage": tokens}`.

        Raises:
            ModelError: If the model can't be reached or refuses; see `agent_core.errors`.
        """
        shown = json.dumps(call["input"], indent=2)
        prompt = f"Must a person approve this call?\n\nTool: {call['tool']}\nInput: {shown}"
        criteria = self._config.system_prompt or f"{_ROLE}\n\n{RISK_CRITERIA}"
        response = await self._model.ask(prompt, _VERDICT, f"{criteria}\n\n{_TASK}", fallback)
        given = only_verdict(response)
        if given is None or not isinstance(given.get("requires_approval"), bool):
            return {"requires": True, "reason": "the classifier gave no verdict", "usage": dict(response.usage)}
        reason = given.get("reason") if isinstance(given.get("reason"), str) else None
        return {"requires": given["requires_approval"], "reason": reason, "usage": dict(response.usage)}


async def decided(model: DecisionModel, call: JsonObject) -> JsonObject:
    """A decision model's verdict on a call, to the same criteria; an uncertain one asks a person.

    Returns:
        `{"requires": bool, "reason": text or None}`.
    """
    question = f"Must a person approve this tool call before it runs?\n\n{RISK_CRITERIA}"
    result = await model.ask(call, {_QUESTION: question})
    answer = result.answers.get(_QUESTION)
    reason = result.reasons.get(_QUESTION)
    if not isinstance(answer, bool):
        return {"requires": True, "reason": reason or "the decision model is uncertain"}
    return {"requires": answer, "reason": reason}
