"""`strands.decisions` by our name: models that answer yes/no questions."""

from countersign.agent_core.decisions import DecisionMetadata, DecisionModel, DecisionResult

__all__ = ["DecisionMetadata", "DecisionModel", "DecisionResult"]
