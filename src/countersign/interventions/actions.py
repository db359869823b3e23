"""`strands.interventions.actions` by our name."""

from countersign.agent_core.interventions import Confirm, Deny, Guide, InterventionAction, Proceed, Transform

__all__ = ["Confirm", "Deny", "Guide", "InterventionAction", "Proceed", "Transform"]
