"""`strands.vended_interventions.hitl` by our name."""

from countersign.agent_core.classifying import ClassifierResult, LLMClassifierConfig
from countersign.agent_core.hitl import HumanInTheLoop

__all__ = ["ClassifierResult", "HumanInTheLoop", "LLMClassifierConfig"]
