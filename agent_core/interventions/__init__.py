"""Interventions: handlers that return typed decisions, applied with fixed precedence."""

from countersign.agent_core.interventions.actions import (
    Confirm,
    Deny,
    Edit,
    Evaluate,
    Guide,
    InterventionAction,
    Proceed,
    Transform,
)
from countersign.agent_core.interventions.handler import InterventionHandler, OnError

__all__ = [
    "Confirm",
    "Deny",
    "Edit",
    "Evaluate",
    "Guide",
    "InterventionAction",
    "InterventionHandler",
    "OnError",
    "Proceed",
    "Transform",
]
