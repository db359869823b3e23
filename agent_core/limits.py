"""Caps on one invocation, as callers write them; `wire.Limits` is how they are kept."""

from typing import TypedDict


class Limits(TypedDict, total=False):
    """Caps on one invocation, checked before each model call; one that is left out, or None, is no cap.

    Attributes:
        turns: Cycles (a model call, and the tools that it asks for); 1 or more.
        total_tokens: What all model calls of the turn read and wrote, those of judges too; 1 or more.
        output_tokens: What they wrote; 1 or more.
    """

    turns: int | None
    total_tokens: int | None
    output_tokens: int | None
