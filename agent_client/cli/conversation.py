"""Messages of a conversation as a person reads them in a shell."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from countersign.agent_client.cli.terminal import shortened, styled, visible, visible_json, visible_lines

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
        texts = [part["text"] if "text" in part else str(part) for part in result.get("content", [])]
        shown = visible_lines(shortened("\n".join(map(str, texts)), _BLOCK_CHARS), "    ")
        return f"    result ({visible(str(result.get('status')))})\n{shown}"
    return f"    {visible(', '.join(block))}"
