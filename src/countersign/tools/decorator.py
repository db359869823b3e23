"""`strands.tools.decorator` by our name."""

from countersign.agent_core.tools import tool

__all__ = ["tool"]
