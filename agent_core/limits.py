"""Caps on one invocation, as callers write them; `wire.Limits` is how they are kept."""

from collections.abc import Iterable
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


def check_limit_names(given: Iterable[str]) -> None:
    """Check that limits are called what limits are called: a misspelt one would be no limit at all.

    Raises:
        TypeError: For the first one that is not, as in Strands.
    """
    known = Limits.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(f"there is no limit {name!r:.100}; the limits are {', '.join(known)}")
