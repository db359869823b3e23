"""Tool results that are too large to be sent: a note takes their place. That a call has run is never left out."""

from collections.abc import Iterable

from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import ToolResult, error_result

WORTH_BYTES = 1_000
"""Shorter results stay: a note would save nothing."""


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
        text = (
            f"The tool ran, but its result is too large to keep: {before:,} bytes beside {beside} "
            "(PayloadTooLargeError). Ask for less, or in smaller parts."
        )
        note = error_result(result["toolUseId"], text)
        result["status"], result["content"] = note["status"], note["content"]
        surplus_bytes -= before - json_size(result)
