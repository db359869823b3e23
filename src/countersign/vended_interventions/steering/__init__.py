"""Steering handlers, as Strands' TypeScript SDK has them among its interventions."""

from countersign.agent_core.steering import LLMSteeringHandler, SteeringHandler

__all__ = ["LLMSteeringHandler", "SteeringHandler"]
