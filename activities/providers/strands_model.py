"""Models of `strands-agents` as models of ours: Bedrock, OpenAI, Anthropic, Gemini, Ollama and more.

One adapter for all: the messages and the stream's events have the same shape. What differs is bytes
(ours travel as JSON), the vendors' exceptions, and their retries.
"""

import base64
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from countersign.activities.providers.failures import as_model_error
from countersign.activities.providers.quiet import CUT, noticing_cuts, without_retries
from countersign.agent_core.errors import ModelError, ModelUnavailableError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message
from countersign.agent_core.models import Model, StreamEvent
from countersign.agent_core.tools.schema import ToolSpec

_BYTES_MARK = "__bytes_encoded__"  # as in Strands' own sessions


class StrandsModel(Model):
    """A model of Strands.

    Args:
        model: An object with the `stream` of `strands.models.Model`. Its SDK's own retries are
            switched off.
    """

    def __init__(self, model: Any) -> None:
        without_retries(model)
        self._counts_at_the_end = noticing_cuts(model)
        self._model = model
        by_itself = getattr(model, "_supports_structured_output", False) is True  # it knows what its vendor enforces
        self._forcing = ("tool_choice", "structured_output_model") if by_itself else ("tool_choice",)
        config = getattr(model, "config", None)
        named = config.get("model_id") if isinstance(config, dict) else None
        self.name = str(named or type(model).__name__)

    async def stream(
        self,
        messages: Sequence[Message],
        tool_specs: Sequence[ToolSpec] | None = None,
        system_prompt: str | None = None,
        *,
        call: int = 0,
        invocation_state: JsonObject | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamEvent]:
        """See `Model.stream`."""
        began_s, counted = time.monotonic(), False
        forced = {name: kwargs[name] for name in self._forcing if name in kwargs}
        try:
            async for event in self._model.stream(
                [_outgoing(message) for message in messages],
                list(tool_specs) if tool_specs else None,
                system_prompt,
                invocation_state=dict(invocation_state or {}),
                **forced,
            ):
                counted = counted or "metadata" in event
                yield _timed(_without_bytes(event), began_s)
            if self._counts_at_the_end and not counted:
                raise ModelUnavailableError(CUT)
        except ModelError:
            raise
        except Exception as error:
            raise as_model_error(error, self.name) from None


def _timed(event: StreamEvent, began_s: float) -> StreamEvent:
    """The event; metadata without a latency gets the one seen from here."""
    if "metadata" not in event:
        return event
    metrics = dict(event["metadata"].get("metrics") or {})
    metrics["latencyMs"] = metrics.get("latencyMs") or round((time.monotonic() - began_s) * 1000)
    return {"metadata": {**event["metadata"], "metrics": metrics}}


def _outgoing(message: Message) -> Any:
    """A message for a vendor: bytes are bytes again, and an input that was no object is empty."""
    content = [_with_bytes(block) for block in message["content"]]
    for block in content:
        if "toolUse" in block and not isinstance(block["toolUse"].get("input"), dict):
            # The model wrote broken JSON. It was told so in the result; no vendor takes its text back.
            block["toolUse"] = {**block["toolUse"], "input": {}}
    return {"role": message["role"], "content": content}


def _with_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(_BYTES_MARK) is True:
            return base64.b64decode(value.get("data", ""))
        return {key: _with_bytes(part) for key, part in value.items()}
    return [_with_bytes(part) for part in value] if isinstance(value, list) else value


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES_MARK: True, "data": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {key: _without_bytes(part) for key, part in value.items()}
    return [_without_bytes(part) for part in value] if isinstance(value, list) else value
