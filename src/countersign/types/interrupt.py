"""`strands.types.interrupt` by our name."""

from countersign.agent_core.messages import InterruptResponse, InterruptResponseContent

__all__ = ["InterruptResponse", "InterruptResponseContent"]
