"""A model that judges instead of answering: it is asked once and calls the tool `verdict` once."""

import contextlib
import json
from typing import Any

from countersign.agent_core.messages import message_text, tool_uses, user_message
from countersign.agent_core.model_making import LateModel, ModelSource
from countersign.agent_core.models import collect
from countersign.agent_core.tools.schema import ToolSpec
from countersign.agent_core.wire import ModelResponse

VERDICT = "verdict"


class JudgeModel:
    """Asks for verdicts.

    Args:
        source: The model; the agent's own if None.
        whose: Who judges and where its model is given, for the message if there is none.
    """

    def __init__(self, source: ModelSource | None, whose: str) -> None:
        self._model = LateModel(source, f"{whose} has no model")

    async def ask(self, prompt: str, tool: ToolSpec, system_prompt: str, fallback: ModelSource | None) -> ModelResponse:
        """What the model says.

        Args:
            prompt: What it is to judge.
            tool: The tool `verdict`.
            system_prompt: Its rules and its task.
            fallback: The agent's own model.

        Raises:
            AgentDefinitionError: If there is no model.
            ModelError: Or whatever else the model raises.
        """
        return await collect(self._model.get(fallback).stream([user_message(prompt)], [tool], system_prompt))


def only_verdict(response: ModelResponse) -> dict[str, Any] | None:
    """The one verdict of a response; None if it has none, or several, which may contradict each other."""
    given: list[Any] = [use["input"] for use in tool_uses(response.message) if use["name"] == VERDICT]
    if not given:
        with contextlib.suppress(ValueError):
            given = [json.loads(message_text(response.message))]  # models without tools write it down
    return given[0] if len(given) == 1 and isinstance(given[0], dict) else None
