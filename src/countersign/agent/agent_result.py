"""`strands.agent.agent_result` by our name."""

from countersign.agent_core.result import AgentResult

__all__ = ["AgentResult"]
