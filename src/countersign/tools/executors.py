"""`strands.tools.executors` by our name."""

from countersign.agent_core.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor, ToolExecutor

__all__ = ["ConcurrentToolExecutor", "SequentialToolExecutor", "ToolExecutor"]
