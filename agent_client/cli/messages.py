"""Messages of a conversation as a person reads them in a shell."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from countersign.agent_client.cli.terminal import shortened, styled, visible_json, visible_lines
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_core.messages import ContentBlock, Message

_BLOCK_CHARS = 4_000


def print_message(message: "Message") -> None:
    """One message of the conversation."""
    print(message_text(message["role"], message["content"]))


def message_text(role: str, content: "Sequence[ContentBlock]") -> str:
    """One message: who speaks, and each block behind a bar."""
    return "\n".join([f"  {styled(visible(role), 'bold')}", *(_block_text(block) for block in content)])


def _block_text(block: "ContentBlock") -> str:
    if isinstance(block.get("text"), str):
        return visible_lines(shortened(block["text"], _BLOCK_CHARS), "    ")
    if "toolUse" in block:
        use = block["toolUse"]
        return f"    calls {visible(str(use.get('name')))}\n{visible_json(use.get('input'), '    ')}"
    if "toolResult" in block:
        result = block["toolResult"]
        shown = visible_lines(shortened("\n".join(map(_part_text, result.get("content", []))), _BLOCK_CHARS), "    ")
        return f"    result ({visible(str(result.get('status')))})\n{shown}"
    return f"    {visible(', '.join(block))}"


def _part_text(part: "ContentBlock") -> str:
    """A part of a tool's result: text as it is, anything else as JSON."""
    return part["text"] if isinstance(part.get("text"), str) else json.dumps(part.get("json", part), ensure_ascii=False)
