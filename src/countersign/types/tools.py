"""`strands.types.tools` by our name."""

from countersign.agent_core.messages import ToolResult, ToolUse
from countersign.agent_core.tools import ToolContext, ToolSpec

__all__ = ["ToolContext", "ToolResult", "ToolSpec", "ToolUse"]
