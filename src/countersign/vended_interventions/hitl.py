"""`strands.vended_interventions.hitl` by our name."""

from countersign.agent_core.hitl import HumanInTheLoop

__all__ = ["HumanInTheLoop"]
