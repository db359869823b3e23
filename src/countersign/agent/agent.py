"""`strands.agent.agent` by our name."""

from countersign.agent_core.agent import Agent

__all__ = ["Agent"]
