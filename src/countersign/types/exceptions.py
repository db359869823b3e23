"""`strands.types.exceptions` by our name."""

from countersign.agent_core.errors import (
    ConcurrencyException,
    ContextWindowOverflowException,
    EventLoopException,
    MaxTokensReachedException,
    ModelThrottledException,
    StructuredOutputException,
)

__all__ = [
    "ConcurrencyException",
    "ContextWindowOverflowException",
    "EventLoopException",
    "MaxTokensReachedException",
    "ModelThrottledException",
    "StructuredOutputException",
]
