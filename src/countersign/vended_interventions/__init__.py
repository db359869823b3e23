"""Ready-made intervention handlers, `strands.vended_interventions` by our name."""

from countersign.agent_core.hitl import HumanInTheLoop

__all__ = ["HumanInTheLoop"]
