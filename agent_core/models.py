"""The model port, and how a stream of events becomes a message."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Sequence
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from countersign.agent_core.errors import ModelThrottledException, ModelUnavailableError
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.messages import ContentBlock, Message, Usage, add_usage, as_models_take_them, no_usage
from countersign.agent_core.tools.schema import ToolSpec
from countersign.agent_core.wire import ModelCall, ModelResponse

StreamEvent: TypeAlias = dict[str, Any]
"""One event of a model's stream, in Strands' shape: {"messageStart"}, {"contentBlockStart"},
{"contentBlockDelta"}, {"contentBlockStop"}, {"messageStop"}, {"metadata"} or {"redactContent"}."""

MODEL_ATTEMPTS = 6
FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 60.0
"""How often a model is called before its error counts, and the pauses between, which double."""


class Model(ABC):
    """A model that answers a conversation. One instance may serve many sessions at once."""

    @abstractmethod
    def stream(
        self,
        messages: Sequence[Message],
        tool_specs: Sequence[ToolSpec] | None = None,
        system_prompt: str | None = None,
        *,
        call: int = 0,
        invocation_state: JsonObject | None = None,
        **kwargs: Any,
    ) -> AsyncIterable[StreamEvent]:
        """Answer the conversation as a stream of events.

        Args:
            messages: The conversation so far; not to be changed.
            tool_specs: The tools that may be asked for.
            system_prompt: The system prompt, or None.
            call: How many model calls the session made before this one.
            invocation_state: What the caller passed along with the prompt.
            **kwargs: For later additions, and only if the model must hand over structured output: `tool_choice`, as
                {"tool": {"name": "Report"}}, and `structured_output_model`, its class. A model that can't be made to
                call a tool may answer with the object as JSON text.

        Raises:
            ModelError: A named one of `agent_core.errors`; retries belong to the driver, so the
                vendor SDK's own should be off.
        """


RETRYABLE = (ModelThrottledException, ModelUnavailableError)
"""What a driver tries again."""

_OF_FILES = (FileNotFoundError, FileExistsError, PermissionError, NotADirectoryError, IsADirectoryError)


def is_connection_trouble(error: BaseException) -> bool:
    """True for a timeout, and for an `OSError` that is about a connection and not about a file."""
    return isinstance(error, (OSError, TimeoutError)) and not isinstance(error, _OF_FILES)


async def answer(
    model: Model,
    call: ModelCall,
    messages: Sequence[Message],
    specs: Sequence[ToolSpec],
    output_model: type[BaseModel] | None = None,
) -> ModelResponse:
    """One call of a model, once.

    Args:
        model: The model.
        call: What it is asked.
        messages: The conversation.
        specs: The tools that it may call; the call's own one is added.
        output_model: The class of what it must hand over, if it must.

    Raises:
        ModelUnavailableError: If it can't be reached.
        ModelError: Or whatever else the model raises.
    """
    forced = {"tool_choice": call.tool_choice, "structured_output_model": output_model}
    forced = {name: value for name, value in forced.items() if value is not None}
    output = [] if call.output_tool is None else [cast(ToolSpec, call.output_tool)]
    try:
        return await collect(
            model.stream(
                as_models_take_them(messages),
                [*specs, *output],
                call.system_prompt,
                call=call.call,
                invocation_state=call.invocation_state,
                **forced,
            )
        )
    except Exception as error:
        if is_connection_trouble(error):
            raise ModelUnavailableError(f"the model can't be reached ({type(error).__name__}: {error})") from error
        raise


async def collect(stream: AsyncIterable[StreamEvent]) -> ModelResponse:
    """Put a model's stream together into one message.

    Args:
        stream: The events.

    Raises:
        ModelUnavailableError: If the stream ends without saying why it stopped.
    """
    content: list[ContentBlock] = []
    block: dict[str, Any] = {}
    stop_reason: str | None = None
    usage, latency_ms = no_usage(), 0
    async for event in stream:
        if "contentBlockStart" in event:
            block = dict(event["contentBlockStart"].get("start", {}))
        elif "contentBlockDelta" in event:
            _add_delta(block, event["contentBlockDelta"]["delta"])
        elif "contentBlockStop" in event:
            closed = _sendable(_close_block(block, len(content)))
            if closed != {"text": ""}:  # a model that says nothing says no block
                content.append(closed)
            block = {}
        elif "messageStop" in event:
            stop_reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            usage = add_usage(usage, _counted(event["metadata"].get("usage")))
            latency_ms += _number((event["metadata"].get("metrics") or {}).get("latencyMs"))
        elif "redactContent" in event:
            instead = event["redactContent"].get("redactAssistantContentMessage")
            content = content if instead is None else [{"text": instead}]
    if stop_reason is None:
        raise ModelUnavailableError("the model's stream ended without a stop reason; the answer may be cut off")
    message: Message = {"role": "assistant", "content": content}
    if stop_reason == "end_turn" and any("toolUse" in part for part in content):
        stop_reason = "tool_use"
    return ModelResponse(stop_reason=stop_reason, message=message, usage=usage, latency_ms=latency_ms)


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    if "text" in delta:
        block["text"] = block.get("text", "") + delta["text"]
    elif "toolUse" in delta:
        use, part = block.setdefault("toolUse", {}), delta["toolUse"].get("input", "")
        use["input"] = use.get("input", "") + part if isinstance(part, str) else part
    elif "reasoningContent" in delta:
        reasoning = block.setdefault("reasoningContent", {})
        for key, value in delta["reasoningContent"].items():
            if key in ("text", "signature"):
                inner = reasoning.setdefault("reasoningText", {})
                inner[key] = inner.get(key, "") + value
            else:
                reasoning[key] = value
    elif "citation" in delta:
        block.setdefault("citations", []).append(delta["citation"])


def _sendable(value: Any) -> Any:
    """A value with its lone surrogates replaced, which a split stream leaves and no channel takes."""
    if isinstance(value, str):  # two halves of one character may have come in two deltas
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_sendable(item) for item in value]
    if isinstance(value, dict):
        return {_sendable(key): _sendable(item) for key, item in value.items()}
    return value


def _counted(usage: Any) -> Usage:
    """Token counts of a vendor, whatever it sends: what is no number counts as none."""
    given = usage if isinstance(usage, dict) else {}
    return cast(Usage, {**no_usage(), **{name: _number(value) for name, value in given.items()}})


def _number(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0


def _close_block(block: dict[str, Any], place: int) -> ContentBlock:
    """A finished block; a tool's input arrives as text and is read here."""
    if "citations" in block:
        return {"citationsContent": {"citations": block["citations"], "content": [{"text": block.get("text", "")}]}}
    if "toolUse" not in block:
        return block or {"text": ""}
    use = block["toolUse"]
    identifier, name = use.get("toolUseId"), use.get("name")
    return {
        "toolUse": {
            "toolUseId": identifier if isinstance(identifier, str) and identifier else f"call-{place}",
            "name": name if isinstance(name, str) else "",
            "input": _input(use.get("input", "")),
        }
    }


def _input(raw: Any) -> Any:
    """A tool's input; what is no JSON, or too deep, stays text, which no tool's schema accepts."""
    text = raw if isinstance(raw, str) else json.dumps(raw)
    try:
        parsed: Any = json.loads(text) if text.strip() else {}
        check_json(parsed, "input")
    except (ValueError, TypeError, RecursionError):
        return text
    return parsed
