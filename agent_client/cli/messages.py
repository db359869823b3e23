"""Messages of a conversation as a person reads them. Text in, text out: nothing is printed here.

Whatever a model, a tool or a stranger wrote stands behind a bar, with nothing hidden.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from countersign.agent_client.cli.terminal import shortened, styled, visible_json, visible_lines
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_core.messages import ContentBlock

_TEXT_CHARS, _RESULT_CHARS = 20_000, 4_000
_BRIEF_CALL_CHARS, _BRIEF_RESULT_CHARS = 300, 500


class Transcript:
    """Turns messages into text; remembers the names of calls for their results.

    Args:
        brief: One line for a call and the beginning of a result: for a conversation, whose questions show what
            will run in full.
    """

    def __init__(self, *, brief: bool = False) -> None:
        self._brief = brief
        self._tools: dict[str, str] = {}

    def text(self, role: str, content: "Sequence[ContentBlock]", width: int | None = None) -> str:
        """One message: who speaks, and its blocks below.

        Args:
            role: Who speaks.
            content: The message's blocks.
            width: Columns of the terminal; None for lines of any length.
        """
        return "\n".join([f"  {styled(visible(role), 'bold')}", *self.blocks(content, "    ", width)])

    def blocks(self, content: "Sequence[ContentBlock]", indent: str, width: int | None = None) -> list[str]:
        """A message's blocks, each as one text of one or more lines."""
        return [self._block(block, indent, width) for block in content]

    def _block(self, block: Any, indent: str, width: int | None) -> str:
        if isinstance(block.get("text"), str):
            return self._cut(block["text"], _TEXT_CHARS, indent, width, prose=True)
        if "toolUse" in block:
            return f"{indent}calls {self._call(block['toolUse'], indent + '  ', width)}"
        if "toolResult" in block:
            result = block["toolResult"]
            name = self._tools.get(str(result.get("toolUseId")), "a call")
            status = "returned" if result.get("status") == "success" else f"ended with {result.get('status')}"
            most = _BRIEF_RESULT_CHARS if self._brief else _RESULT_CHARS
            shown = self._cut("\n".join(map(_part_text, result.get("content", []))), most, indent + "  ", width)
            return f"{indent}{visible(name)} {visible(status)}\n{shown}"
        return f"{indent}{visible(', '.join(block))}"

    def _cut(self, text: str, most_chars: int, indent: str, width: int | None, *, prose: bool = False) -> str:
        """Foreign text behind its bar, and below it, where it can't be faked, how much of it is not shown."""
        lines = visible_lines(text[:most_chars], indent, width, prose=prose)
        if (more := len(text) - most_chars) <= 0:
            return lines
        where = command("show", "SESSION", "--json") if self._brief else "--json"
        return f"{lines}\n{indent}{styled(f'… {more:,} characters more; all with {where}', 'dim')}"

    def _call(self, use: Any, indent: str, width: int | None) -> str:
        self._tools[str(use.get("toolUseId"))] = name = str(use.get("name"))
        if not self._brief:
            return f"{visible(name)}\n{visible_json(use.get('input'), indent, width)}"
        return visible(shortened(f"{name} {json.dumps(use.get('input'), ensure_ascii=False)}", _BRIEF_CALL_CHARS))


def _part_text(part: "ContentBlock") -> str:
    """A part of a tool's result: text as it is, anything else as JSON."""
    return part["text"] if isinstance(part.get("text"), str) else json.dumps(part.get("json", part), ensure_ascii=False)
