"""A model that judges instead of answering: it is asked once and calls the tool `verdict` once."""

import contextlib
import json
from typing import Any

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.messages import message_text, tool_uses, user_message
from countersign.agent_core.model_making import ModelSource, make_model
from countersign.agent_core.models import Model, collect
from countersign.agent_core.tools.schema import ToolSpec
from countersign.agent_core.wire import ModelResponse

VERDICT = "verdict"


class JudgeModel:
    """Asks for verdicts. The model is made at the first one, which durably is in a step.

    Args:
        source: The model; the agent's own if None.
        whose: Who judges and where its model is given, for the message if there is none.
    """

    def __init__(self, source: ModelSource | None, whose: str) -> None:
        self._source, self._whose = source, whose
        self._made: list[Model] = []

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
        if not self._made:
            source = self._source if self._source is not None else fallback
            if source is None:
                raise AgentDefinitionError(f"{self._whose} has no model")
            self._made.append(make_model(source))
        return await collect(self._made[0].stream([user_message(prompt)], [tool], system_prompt))


def only_verdict(response: ModelResponse) -> dict[str, Any] | None:
    """The one verdict of a response; None if it has none, or several, which may contradict each other."""
    given: list[Any] = [use["input"] for use in tool_uses(response.message) if use["name"] == VERDICT]
    if not given:
        with contextlib.suppress(ValueError):
            given = [json.loads(message_text(response.message))]  # models without tools write it down
    return given[0] if len(given) == 1 and isinstance(given[0], dict) else None
