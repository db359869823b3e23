"""`strands.vended_interventions.hitl.classifier` by our name."""

from countersign.agent_core.classifying import ClassifierResult, LLMClassifierConfig

__all__ = ["ClassifierResult", "LLMClassifierConfig"]
