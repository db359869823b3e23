"""`ScriptedModel`: a model without a model, for tests, demos and the first five minutes.

It says what its script says. The script may read the conversation, so that what it does next can
depend on what the tools really returned.
"""

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from countersign.agent_core.errors import ModelError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import ContentBlock, Message, message_text, tool_uses
from countersign.agent_core.models import Model, StreamEvent
from countersign.agent_core.tools.schema import ToolSpec


@dataclass(frozen=True)
class Scene:
    """What a scripted turn may look at.

    Attributes:
        messages: The conversation so far.
        call: How many model calls the session made before this one.
        system_prompt: The system prompt, or None.
        tools: Names of the tools that may be asked for.
    """

    messages: Sequence[Message]
    call: int
    system_prompt: str | None
    tools: tuple[str, ...]

    @property
    def turn(self) -> Sequence[Message]:
        """The messages since the last one that a user wrote, that one included."""
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if message["role"] == "user" and not any("toolResult" in block for block in message["content"]):
                return self.messages[index:]
        return self.messages

    @property
    def prompt(self) -> str:
        """The text of the last message that a user wrote."""
        return message_text(self.turn[0]) if self.turn else ""

    def results(self, tool: str, status: str = "success") -> list[Any]:
        """What the tool of that name returned in this turn, oldest first: JSON where it is JSON, else text."""
        names = {use["toolUseId"]: use["name"] for message in self.turn for use in tool_uses(message)}
        found: list[Any] = []
        for message in self.turn:
            for block in message["content"]:
                result = block.get("toolResult")
                if result and names.get(result["toolUseId"]) == tool and result["status"] == status:
                    found.extend(_value(part) for part in result["content"])
        return found


def _value(block: ContentBlock) -> Any:
    if "json" in block:
        return block["json"]
    try:
        return json.loads(block.get("text", ""))
    except ValueError:
        return block.get("text", "")


Turn: TypeAlias = str | ContentBlock | list[ContentBlock] | Exception
"""One answer: text, a block, blocks, or an error to raise."""

Script: TypeAlias = Sequence[Turn] | Callable[[Scene], Turn | Awaitable[Turn]]


_WITH_ID = 3


def calls(*uses: tuple[str, Any] | tuple[str, Any, str], text: str | None = None) -> list[ContentBlock]:
    """Blocks that ask for tools.

    Args:
        *uses: (tool, input) or (tool, input, toolUseId) of each call.
        text: What the model says beside them.
    """
    blocks: list[ContentBlock] = [{"text": text}] if text else []
    for use in uses:
        tool, value = use[0], use[1]
        block: dict[str, Any] = {"name": tool, "input": value}
        if len(use) == _WITH_ID:
            block["toolUseId"] = use[-1]
        blocks.append({"toolUse": block})
    return blocks


class ScriptedModel(Model):
    """A model that follows a script.

    Args:
        script: A turn for each model call of the session, or a function from the `Scene` to a turn.

    Ids of tool uses that the script leaves out are made from the call's number, so that a
    scripted conversation is the same every time and on every worker.
    """

    def __init__(self, script: Script) -> None:
        self._script = script

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
        scene = Scene(messages, call, system_prompt, tuple(spec["name"] for spec in tool_specs or ()))
        turn = await self._turn(scene)
        if isinstance(turn, Exception):
            raise turn
        blocks = [{"text": turn}] if isinstance(turn, str) else [turn] if isinstance(turn, dict) else turn
        yield {"messageStart": {"role": "assistant"}}
        asks = False
        for index, block in enumerate(blocks):
            if "toolUse" in block:
                asks = True
                use = block["toolUse"]
                start = {"toolUseId": use.get("toolUseId") or f"call-{call}-{index}", "name": use["name"]}
                value = use["input"]
                yield {"contentBlockStart": {"start": {"toolUse": start}}}
                text = value if isinstance(value, str) else json.dumps(value)
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": text}}}}
            else:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": block.get("text", "")}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if asks else "end_turn"}}
        words = sum(len(json.dumps(block).split()) for block in blocks)
        yield {
            "metadata": {
                "usage": {"inputTokens": len(messages), "outputTokens": words, "totalTokens": len(messages) + words},
                "metrics": {"latencyMs": 0},
            }
        }

    async def _turn(self, scene: Scene) -> Turn:
        if callable(self._script):
            turn = self._script(scene)
            return await turn if inspect.isawaitable(turn) else turn
        if scene.call >= len(self._script):
            raise ModelError(
                f"the script has {len(self._script)} turns and the session asks for number {scene.call + 1}; add a turn"
            )
        return self._script[scene.call]
