"""`strands.interventions.handler` by our name."""

from countersign.agent_core.interventions import InterventionHandler, OnError

__all__ = ["InterventionHandler", "OnError"]
