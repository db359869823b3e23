"""Messages and content blocks, in the JSON shape that Strands and Bedrock use."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

ContentBlock: TypeAlias = dict[str, Any]
"""One of {"text"}, {"toolUse"}, {"toolResult"}, {"reasoningContent"}, {"image"}, {"document"}, …"""


class ToolUse(TypedDict):
    """A call that the model asks for. `input` is any JSON; only an object can run."""

    toolUseId: str
    name: str
    input: Any


class ToolResult(TypedDict):
    """What the model gets back for one call."""

    toolUseId: str
    status: Literal["success", "error"]
    content: list[ContentBlock]


class Message(TypedDict):
    """One message of the conversation."""

    role: Literal["user", "assistant"]
    content: list[ContentBlock]
    metadata: NotRequired[dict[str, Any]]


Messages: TypeAlias = list[Message]


class Usage(TypedDict):
    """Token counts, as the model reports them."""

    inputTokens: int
    outputTokens: int
    totalTokens: int


def no_usage() -> Usage:
    """A count of nothing."""
    return {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}


def add_usage(left: Usage, right: Usage) -> Usage:
    """Sum of two counts."""
    return {
        "inputTokens": left["inputTokens"] + right.get("inputTokens", 0),
        "outputTokens": left["outputTokens"] + right.get("outputTokens", 0),
        "totalTokens": left["totalTokens"] + right.get("totalTokens", 0),
    }


def user_message(content: str | Sequence[ContentBlock]) -> Message:
    """A user message from text or content blocks."""
    return {"role": "user", "content": [{"text": content}] if isinstance(content, str) else list(content)}


def assistant_text(text: str) -> Message:
    """An assistant message with one text block."""
    return {"role": "assistant", "content": [{"text": text}]}


def message_text(message: Message) -> str:
    """The text blocks of a message, each on lines of its own."""
    return "\n".join(block["text"] for block in message["content"] if isinstance(block.get("text"), str))


def tool_uses(message: Message) -> list[ToolUse]:
    """The calls that a message asks for, in order."""
    return [block["toolUse"] for block in message["content"] if "toolUse" in block]


def error_result(tool_use_id: str, text: str) -> ToolResult:
    """A tool result with error status."""
    return {"toolUseId": tool_use_id, "status": "error", "content": [{"text": text}]}


def results_message(results: Iterable[ToolResult]) -> Message:
    """The user message that carries the results of one assistant message's calls."""
    return {"role": "user", "content": [{"toolResult": result} for result in results]}


def history_faults(messages: Sequence[Message]) -> list[str]:
    """Where a conversation breaks the rule "one toolResult per toolUse in the next message".

    Returns:
        One sentence per fault; empty for a valid conversation. A last message that still waits
        for its results counts as a fault.
    """
    faults: list[str] = []
    for index, message in enumerate(messages):
        wanted = [use["toolUseId"] for use in tool_uses(message)]
        following = messages[index + 1] if index + 1 < len(messages) else None
        got = _result_ids(following) if following is not None else []
        if wanted != got and (wanted or got):
            faults.append(f"message {index} asks for {wanted}; message {index + 1} answers {got}")
    if messages and _result_ids(messages[0]):
        faults.append("message 0 answers calls that nobody made")
    return faults


def _result_ids(message: Message) -> list[str]:
    return [block["toolResult"]["toolUseId"] for block in message["content"] if "toolResult" in block]
