"""Wraps each call of user code in a cycle: forbidden effects become errors that say the way out."""

from collections.abc import Iterator
from contextlib import contextmanager

from countersign.agent_core.errors import PolicyViolationError
from countersign.workflows.library_watch import watch
from countersign.workflows.sandbox import STEP_AWAITED, explain


@contextmanager
def policed(callback: str, way_out: str = STEP_AWAITED) -> Iterator[None]:
    """Watch one call of user code.

    Args:
        callback: What runs, in words.
        way_out: What it shall do instead.

    Raises:
        PolicyViolationError: In the place of the sandbox's error, naming the callback, what it
            reached for, and the way out.
    """
    try:
        with watch():
            yield
    except Exception as error:
        text = explain(error, callback, way_out)
        if text is None:
            raise
        raise PolicyViolationError(text) from error
