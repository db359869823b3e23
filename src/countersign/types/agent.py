"""`strands.types.agent` by our name."""

from countersign.agent_core.limits import Limits
from countersign.agent_core.messages import AgentInput

__all__ = ["AgentInput", "Limits"]
