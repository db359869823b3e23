"""What a session's children and activities return, read in the session's own code.

The SDK would read it where an error fails the session's task for ever; and whoever may complete an activity by hand
may give it any result.
"""

from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RawValue

from countersign.agent_core.errors import CountersignError, UnreadableHereError, reason_of

T = TypeVar("T")


class UnreadableResultError(CountersignError):
    """A child or an activity has left something that is not what it should."""


def read(raw: RawValue, kind: type[T], what: str) -> T:
    """A result.

    Args:
        raw: As it came.
        kind: What it should be.
        what: The same in words, for the error.

    Raises:
        UnreadableHereError: If this worker lacks the key or the blob that it takes; the task is tried again.
        UnreadableResultError: If it is something else.
    """
    hint: Any = kind
    try:
        value: T = workflow.payload_converter().from_payload(raw.payload, hint)
    except UnreadableHereError:
        raise
    except Exception as error:  # of whatever converter
        raise UnreadableResultError(f"{what} can't be read: {reason_of(error)}") from None
    if value is None:  # no converter holds it against the type
        raise UnreadableResultError(f"{what} can't be read: there is nothing")
    return value
