"""A plain yes and a plain no: what they are, whatever was asked. Imports nothing slow: the command needs it early."""

from typing import Any

_APPROVALS = frozenset({"y", "yes"})
_REFUSALS = frozenset({"n", "no", "deny", "denied", "reject", "rejected", "refuse", "false", "stop", "cancel", "never"})


def approves(response: Any) -> bool:
    """True for `True`, "y" and "yes" (trimmed, any case), and for nothing else."""
    return response is True or (isinstance(response, str) and response.strip().lower() in _APPROVALS)


def refuses(response: Any) -> bool:
    """True for an answer that clearly says no: False, a text that begins with such a word, or a decision against."""
    if isinstance(response, str):
        words = response.strip().lower().replace(",", " ").replace(":", " ").replace(".", " ").split()
        return bool(words) and words[0] in _REFUSALS
    if isinstance(response, dict):
        return response.get("decision") in ("reject", "deny") or response.get("approved") is False
    return response is False
