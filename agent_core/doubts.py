"""Calls of which a person must say what now: what a batch keeps of them, and what the model is told if nobody does."""

from countersign.agent_core.wire import Pending


def doubt(pending: Pending, index: int, detail: str, *, not_run: bool = False) -> None:
    """Keep a call for a person's word.

    Args:
        pending: Its batch.
        index: Its place there.
        detail: What is known.
        not_run: True if surely nobody has run it; else it may have run.
    """
    resolve(pending, index)
    pending.unknown[index] = detail
    if not_run:
        pending.not_run.append(index)


def resolve(pending: Pending, index: int) -> None:
    """A call is in doubt no more."""
    pending.unknown.pop(index, None)
    pending.not_run = [one for one in pending.not_run if one != index]


def doubt_words(pending: Pending, index: int) -> str | None:
    """What the model is told of a call in doubt; None if it is not in doubt."""
    detail = pending.unknown.get(index)
    if detail is None:
        return None
    if index in pending.not_run:
        return f"This call has not run: {detail}"
    return f"This call may have run; its outcome is unknown: {detail}"
