"""Decision models: they answer yes/no questions about a state, and generate no text."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from countersign.agent_core.json_values import JsonObject


@dataclass(frozen=True)
class DecisionMetadata:
    """What is known of how the answers came about.

    Attributes:
        latency_ms: How long it took, in milliseconds; None if unknown.
    """

    latency_ms: int | None = None


@dataclass(frozen=True)
class DecisionResult:
    """Answers by the question's id.

    Attributes:
        answers: True, False, or None where the model is uncertain; a question that is left out is
            uncertain too.
        reasons: Why, where the model says so.
        metadata: How they came about.
    """

    answers: Mapping[str, bool | None]
    reasons: Mapping[str, str] = field(default_factory=dict)
    metadata: DecisionMetadata = field(default_factory=DecisionMetadata)


class DecisionModel(ABC):
    """Override `_ask`. It may do any I/O: durably it runs as a step."""

    @abstractmethod
    async def _ask(self, state: Any, questions: Mapping[str, JsonObject], **kwargs: Any) -> DecisionResult:
        """Answer questions about a state.

        Args:
            state: What they are about; JSON.
            questions: By id, each `{"question": "..."}`.
            **kwargs: For later additions.
        """

    async def ask(self, state: Any, questions: Mapping[str, str]) -> DecisionResult:
        """Answer yes/no questions.

        Args:
            state: What they are about; JSON.
            questions: The questions by an id of your own.

        Raises:
            TypeError: If the model returns no `DecisionResult`.
        """
        result = await self._ask(state, {name: {"question": text} for name, text in questions.items()})
        if not isinstance(result, DecisionResult):
            raise TypeError(f"{type(self).__name__}._ask returned {result!r:.200}; return a DecisionResult")
        return result
