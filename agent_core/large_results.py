"""Tool results that are too large to be sent: a note takes their place. That a call has run is never left out."""

from collections.abc import Iterable

from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import ToolResult, error_result

WORTH_BYTES = 1_000
"""Shorter results stay: a note would save nothing."""


def too_large_text(size_bytes: int, why: str) -> str:
    """What takes the place of a result.

    Args:
        size_bytes: Its size as JSON.
        why: What it is too large for, as words to put behind the size.
    """
    return (
        f"The tool ran, but its result is too large to keep: {size_bytes:,} bytes{why} (PayloadTooLargeError). "
        "Ask for less, or in smaller parts."
    )


def shorten(results: Iterable[ToolResult], surplus_bytes: int, beside: str) -> None:
    """Replace the largest results by notes that the tool ran, until enough is saved.

    Args:
        results: The results; changed in place.
        surplus_bytes: How much must go, as JSON.
        beside: What they must fit beside, for the note.
    """
    for result in sorted(results, key=json_size, reverse=True):
        before = json_size(result)
        if surplus_bytes <= 0 or before < WORTH_BYTES:
            return
        noted = error_result(result["toolUseId"], too_large_text(before, f" beside {beside}"))
        result["status"], result["content"] = noted["status"], noted["content"]
        surplus_bytes -= before - json_size(result)
