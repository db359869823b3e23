"""What can become of a call: it runs, it is refused, or people are asked."""

from dataclasses import dataclass

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
    """The call runs, exactly like this."""

    call: ToolCall
    tool: Tool
    tool_use: ToolUse


Decision = Refused | Asked | Run
