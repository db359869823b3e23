"""What can become of a call: it runs, it is refused, or people are asked."""

from dataclasses import dataclass, field

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import ToolResult, ToolUse
from countersign.agent_core.tools.base import Tool
from countersign.agent_core.wire import Question, ToolCall


@dataclass
class Refused:
    """The call gets this result without running."""

    result: ToolResult
    tool_use: ToolUse
    tool: Tool | None = None
    cancel_message: str | None = None
    error: Exception | None = None


@dataclass
class Asked:
    """People must answer first."""

    questions: list[Question]


@dataclass
class Run:
    """The call runs, exactly like this.

    Attributes:
        inline: The approvals that were given inline, for the audit.
    """

    call: ToolCall
    tool: Tool
    tool_use: ToolUse
    inline: list[JsonObject] = field(default_factory=list)


Decision = Refused | Asked | Run
