"""What a vendor's exception means: one of this project's errors, told once, here.

Vendor SDKs are not imported for it. They differ in their classes and agree in what those carry:
an HTTP status, a response with headers, a name for a connection that failed.
"""

import email.utils
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from countersign.activities.providers.secrets import without_secrets
from countersign.agent_core.errors import (
    ContextWindowOverflowException,
    ModelAuthenticationError,
    ModelError,
    ModelRequestError,
    ModelThrottledException,
    ModelUnavailableError,
)
from countersign.agent_core.models import is_connection_trouble

LONGEST_WAIT_S = 300.0
"""A vendor that asks for a longer pause is asked again after this one."""

_UNREACHABLE = {
    "APIConnectionError",  # openai, anthropic and others made by the same generator
    "TransportError",  # httpx
    "ClientConnectionError", "ClientPayloadError",  # aiohttp
    "HTTPClientError", "ConnectionError", "EventStreamError",  # botocore
}  # fmt: skip
"""Names of classes, anywhere among an exception's bases, that say: no answer, or half of one."""

_TIMEOUT_CLIENT_ERROR, _CONFLICT, _TOO_EARLY, _TOO_MANY = 408, 409, 425, 429
_WORTH_A_RETRY = {_TIMEOUT_CLIENT_ERROR, _CONFLICT, _TOO_EARLY}


def as_model_error(error: BaseException, model: str) -> ModelError:
    """The error of this project that a vendor's exception stands for.

    Args:
        error: What the vendor's SDK or Strands raised.
        model: The model's name, for the message.
    """
    if isinstance(error, ModelError):
        return error
    names = {kind.__name__ for part in _chain(error) for kind in type(part).__mro__}
    status = next((found for part in _chain(error) if (found := _status(part)) is not None), None)
    text = f"{model}: {_words(error)}"
    if "ContextWindowOverflowException" in names:
        return ContextWindowOverflowException(text)
    if "ModelThrottledException" in names or status == _TOO_MANY or "ThrottlingException" in _codes(error):
        throttled = ModelThrottledException(text)
        throttled.retry_after_s = next((s for part in _chain(error) if (s := _retry_after_s(part)) is not None), None)
        return throttled
    if status is not None and (status >= 500 or status in _WORTH_A_RETRY):
        return ModelUnavailableError(text)
    if status in (401, 403) or (status is None and ("api_key" in str(error) or "NoCredentialsError" in names)):
        return ModelAuthenticationError(f"{text}; check the key and the address in the worker's environment")
    if status is not None:
        return ModelRequestError(text)
    if names & _UNREACHABLE or any(is_connection_trouble(part) for part in _chain(error)):
        return ModelUnavailableError(text)
    return ModelError(text)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what caused it: Strands wraps a vendor's, which wraps its HTTP library's."""
    seen: set[int] = set()
    part: BaseException | None = error
    while part is not None and id(part) not in seen:
        seen.add(id(part))
        yield part
        part = part.__cause__


def _status(error: BaseException) -> int | None:
    """An HTTP status, wherever the vendor keeps it."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        found: Any = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = getattr(error, "status_code", None) or getattr(response, "status_code", None)
        found = found or getattr(error, "code", None)  # google
    return found if isinstance(found, int) and 400 <= found < 600 else None


def _codes(error: BaseException) -> set[str]:
    """AWS's error codes."""
    responses = [getattr(part, "response", None) for part in _chain(error)]
    return {str(found.get("Error", {}).get("Code")) for found in responses if isinstance(found, dict)}


def _retry_after_s(error: BaseException) -> float | None:
    """The pause that the vendor asks for, in seconds; None if it names none."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    try:
        if headers.get("retry-after-ms"):
            wait_s = float(headers["retry-after-ms"]) / 1000
        elif headers.get("retry-after"):
            wait_s = _seconds(headers["retry-after"])
        else:
            return None
    except (TypeError, ValueError):
        return None
    return min(max(wait_s, 0.0), LONGEST_WAIT_S) if math.isfinite(wait_s) else None


def _seconds(text: str) -> float:
    """Seconds, or an HTTP date.

    Raises:
        ValueError: For neither.
    """
    try:
        return float(text)
    except ValueError:
        return (email.utils.parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()


def _words(error: BaseException) -> str:
    kind = type(error).__name__
    return without_secrets(f"{kind}: {str(error)[:1_000]}" if str(error) else kind)
