"""Tools: plain functions that a model may ask to run, their schemas and what their bodies may see."""

from countersign.agent_core.tools.base import Tool
from countersign.agent_core.tools.context import ToolContext
from countersign.agent_core.tools.decorator import DecoratedTool, tool
from countersign.agent_core.tools.registry import ToolRegistry
from countersign.agent_core.tools.schema import ToolSpec

__all__ = ["DecoratedTool", "Tool", "ToolContext", "ToolRegistry", "ToolSpec", "tool"]
