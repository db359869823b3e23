"""What stands for a payload that can't be read and can't be told to be ours; and the converters that refuse it.

Failing on such a payload would fail the workflow task for ever, before any of our code runs. So storage and
codec hand on a marker, and whoever decodes it gets a `ValueError` with the reason. One whose key or blob is not
here may still be ours: its marker says so, and whoever decodes it gets an `UnreadableHereError`.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import CompositePayloadConverter, EncodingPayloadConverter

from countersign.agent_core.errors import UnreadableHereError

UNREADABLE = b"countersign/unreadable"
_HERE = "here"
_LONGEST = 500

UNTYPED_BYTES = 4 * 1024 * 1024
"""What values whose types nobody has said may weigh together to be decoded at once."""


def unreadable(reason: str, *, here: bool = False) -> Payload:
    """The marker.

    Args:
        reason: Why the payload can't be read, for a person.
        here: Whether it is this process that can't read it, while another one may.
    """
    metadata = {"encoding": UNREADABLE, **({_HERE: b"true"} if here else {})}
    return Payload(metadata=metadata, data=reason[:_LONGEST].encode())


class _Refusing(EncodingPayloadConverter):
    """Decodes a marker into an error, and encodes nothing."""

    @property
    def encoding(self) -> str:
        return UNREADABLE.decode()

    def to_payload(self, value: Any) -> Payload | None:
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        reason = payload.data.decode(errors="replace")
        raise UnreadableHereError(reason) if _HERE in payload.metadata else ValueError(reason)


_SHARED = CompositePayloadConverter(*PydanticPayloadConverter().converters.values(), _Refusing()).converters
"""The SDK makes payload converters for each activity and command; what pydantic knows of types must not be lost
with them, and they must cost nothing."""


class OurPayloadConverter(CompositePayloadConverter):
    """Values to JSON and back, as in `temporalio.contrib.pydantic`; a marker raises `ValueError`."""

    def __init__(self) -> None:
        self.converters = _SHARED


class TolerantPayloadConverter(OurPayloadConverter):
    """For workers: what can't be decoded and has no type comes as a `RawValue` instead of failing the task.

    The SDK decodes a workflow's arguments without types if it takes a varying number of them. If they weigh more
    than `UNTYPED_BYTES` together, they come as `RawValue`s, too: JSON takes fifty times its size in memory, and
    whoever gets it first looks at who sent it.
    """

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        """See temporalio."""
        pairs = [(payload, hint) for payload, hint in zip_longest(payloads, type_hints or []) if payload is not None]
        heavy = sum(len(payload.data) for payload, hint in pairs if hint is None) > UNTYPED_BYTES
        return [RawValue(payload) if heavy and hint is None else self._one(payload, hint) for payload, hint in pairs]

    def _one(self, payload: Payload, hint: type | None) -> Any:
        if hint is not None:
            return super().from_payloads([payload], [hint])[0]
        try:
            return super().from_payloads([payload])[0]
        except Exception:  # of whatever converter: its sender chose the bytes
            return RawValue(payload)
