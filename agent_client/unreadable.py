"""What to say, at a command's or a client's end, of values that can't be read there. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager

from countersign.agent_client.errors import SessionUnreadableError
from countersign.agent_client.payloads.errors import PayloadError
from countersign.agent_client.payloads.guarding import AGAIN

READING_ERRORS = (PayloadError, ValueError, KeyError, RuntimeError)
"""What decoding may raise: a key or a store is missing, or the value's sender chose the bytes."""


@contextmanager
def readable(session_id: str) -> Iterator[None]:
    """Around whatever decodes what a session says: what it raises becomes an error of clients.

    Raises:
        SessionUnreadableError: It can't be decoded here.
    """
    try:
        yield
    except READING_ERRORS as error:
        raise SessionUnreadableError(session_id, why(error)) from error


def why(error: Exception) -> str:
    """The error's words, without the promise that is for workers only: nobody tries a command again."""
    text = without_promise(str(error))
    return text if isinstance(error, PayloadError) else f"a value can't be decoded: {text}"


def without_promise(text: str) -> str:
    """A payload error's words, without what holds for the worker that tries again."""
    return text.removesuffix(AGAIN).rstrip(" :;")


def in_short(reason: str) -> str:
    """The first part of `why`: "encrypted with key 'k1'"."""
    return reason.partition(":")[0].removeprefix("a payload is ")
