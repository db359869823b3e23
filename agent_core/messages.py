"""Messages and content blocks, in the JSON shape that Strands and Bedrock use."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from countersign.agent_core.json_values import check_json

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


class InterruptResponse(TypedDict):
    """An answer to one interrupt."""

    interruptId: str
    response: Any


class InterruptResponseContent(TypedDict):
    """The block that an answer is given in."""

    interruptResponse: InterruptResponse


AgentInput: TypeAlias = str | list[ContentBlock] | list[InterruptResponseContent] | None
"""What an agent is prompted with, or what is answered: text, content blocks, or `interruptResponse` blocks."""

BLANK_TEXT, NO_TOOL_NAME = "[blank text]", "INVALID_TOOL_NAME"
"""What a model reads where it wrote nothing, or a tool's name that no vendor takes."""

_GUIDANCE_KEY = "guidance"

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


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


def guidance_message(feedback: str) -> Message:
    """What a handler, or the loop itself, says to the model in the middle of a turn. The mark is ours, no vendor's."""
    return {**user_message(feedback), "metadata": {"custom": {_GUIDANCE_KEY: True}}}


def is_guidance(message: Message) -> bool:
    """True for what `guidance_message` made."""
    custom: Any = (message.get("metadata") or {}).get("custom")
    return isinstance(custom, dict) and _GUIDANCE_KEY in custom


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


def not_run(tool_use_id: str, text: str, runs: int = 0) -> ToolResult:
    """The result of a call that does not run, or does not run again.

    Args:
        tool_use_id: The call.
        text: Why.
        runs: How often it had run before a hook asked for another try: the model must know.
    """
    result = error_result(tool_use_id, text)
    if runs:
        result["content"].append({"text": f"The call had run before ({runs}x); it was not repeated."})
    return result


def results_message(results: Iterable[ToolResult]) -> Message:
    """The user message that carries the results of one assistant message's calls."""
    return {"role": "user", "content": [{"toolResult": result} for result in results]}


def unanswered(messages: Sequence[Message], asking: Message) -> int | None:
    """Where the results of a message's calls belong: the place behind it. None if it is not there, or has them."""
    ids = [use["toolUseId"] for use in tool_uses(asking)]
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] == "assistant" and [use["toolUseId"] for use in tool_uses(messages[place])] == ids:
            return None if _result_ids(*messages[place + 1 : place + 2]) else place + 1
    return None


def as_models_take_them(messages: Sequence[Message]) -> list[Message]:
    """The conversation without what a model may write and no vendor takes back.

    Blank texts of its own messages go, or say that they are blank if nothing else is there; a tool's name that is
    none is replaced. The words are those of Strands. What is stored stays as it is.
    """
    return [_retakable(message) if message["role"] == "assistant" else message for message in messages]


def _retakable(message: Message) -> Message:
    asks, content = bool(tool_uses(message)), []
    for block in message["content"]:
        if "text" in block and not str(block["text"] or "").strip():
            if not asks:
                content.append({**block, "text": BLANK_TEXT})
        elif "toolUse" in block and not _TOOL_NAME.fullmatch(str(block["toolUse"]["name"])):
            content.append({"toolUse": {**block["toolUse"], "name": NO_TOOL_NAME}})
        else:
            content.append(block)
    return {"role": message["role"], "content": content or [{"text": BLANK_TEXT}]}


def shape_fault(messages: object, *, deep: bool = True) -> str | None:
    """Why something is no list of messages; None if it is one.

    Args:
        messages: What may be one.
        deep: Whether to look into the blocks for what is not JSON.
    """
    if not isinstance(messages, list):
        return f"it must be a list of messages, not {type(messages).__name__}"
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            return f'message {place} must be a dict with "role" ("user" or "assistant") and "content"'
        content = message.get("content")
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            return f'"content" of message {place} must be a list of content blocks'
        if not isinstance(message.get("metadata", {}), dict):
            return f'"metadata" of message {place} must be a dict'
    if not deep:
        return None
    try:
        check_json(messages, "the messages")
    except TypeError as error:
        return str(error)
    return None


def mended(messages: Sequence[Message], text: str) -> list[Message]:
    """A conversation without what is no message; a call whose results are gone with that has `text` for one."""
    kept = [message for message in messages if shape_fault([message]) is None]
    found: list[Message] = []
    for place, message in enumerate(kept):
        found.append(message)
        wanted = [use["toolUseId"] for use in tool_uses(message)]
        if wanted and wanted != _result_ids(*kept[place + 1 : place + 2]):
            found.append(results_message(error_result(use_id, text) for use_id in wanted))
    return found


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


def _result_ids(*messages: Message) -> list[str]:
    blocks = [block for message in messages for block in message["content"]]
    return [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
