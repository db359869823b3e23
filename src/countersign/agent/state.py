"""`strands.agent.state` by our name."""

from countersign.agent_core.state import AgentState

__all__ = ["AgentState"]
