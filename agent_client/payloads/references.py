"""External storage as the SDK does it, that is not thrown by references which can't be told to be ours.

The SDK raises for a driver's name that it does not know, and for a reference that it can't parse, before any
driver is asked. Workflow tasks would fail on that for ever. These subclasses put a marker there; they
override four methods of the SDK that are private, and tests/payloads/test_references.py holds them to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1.external_storage_pb2 import ExternalStorageReference
from temporalio.converter import (
    DataConverter,
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from countersign.agent_client.payloads.errors import NotHereError, StorageError
from countersign.agent_client.payloads.unreadable import unreadable

_MESSAGE = ExternalStorageReference.DESCRIPTOR.full_name.encode()
_MARKED = "__temporal_external_storage_reference"

FOREIGN_STORED_BYTES = 16 * 1024 * 1024
"""From this weight on no further references are read of a message that anybody may have sent: they weigh little."""


def is_reference(payload: Payload) -> bool:
    """True for a payload that stands for one that is stored elsewhere."""
    encoding = payload.metadata.get("encoding")
    return (
        encoding == b"json/external-storage-reference"  # before the SDK had a message for it
        or (encoding == b"json/protobuf" and payload.metadata.get("messageType") == _MESSAGE)
        or payload.metadata.get(_MARKED) == b"true"
    )


class UnknownDriver(StorageDriver):
    """Stands for a driver that nobody here knows: what it holds is unreadable, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """See temporalio."""
        return self._name

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Never asked."""
        raise StorageError(f"there is no storage driver {self._name!r}")

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """See temporalio."""
        reason = f"it is stored by a driver that this worker does not know ({self._name:.100})"
        return [unreadable(reason if self._name else "its storage reference can't be parsed") for _ in claims]


@dataclass(frozen=True)
class TolerantStorage(ExternalStorage):
    """The SDK's external storage; unknown drivers and broken references become markers."""

    def _get_driver_by_name(self, name: str) -> StorageDriver:
        return self._driver_map.get(name) or UnknownDriver(name)

    def _decode_reference(self, payload: Payload) -> ExternalStorageReference | None:
        try:
            return super()._decode_reference(payload)
        except Exception:  # of a JSON parser: its sender chose the bytes
            return ExternalStorageReference()


@dataclass(frozen=True)
class TolerantDataConverter(DataConverter):
    """The SDK's data converter; what calls itself an encoded reference and is none becomes a marker.

    So does, among what anybody may have sent, a reference to what is not here, or to too much.
    """

    async def _external_retrieve_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        if not getattr(self.payload_codec, "from_anybody", False):  # our codec knows what is at hand
            return await super()._external_retrieve_payload_sequence(payloads)
        found: list[Payload] = []
        left_bytes = FOREIGN_STORED_BYTES
        for payload in payloads:
            if left_bytes <= 0 and is_reference(payload):
                found.append(unreadable(f"what its message refers to is larger than {FOREIGN_STORED_BYTES:,} bytes"))
                continue
            try:
                found += await super()._external_retrieve_payload_sequence([payload])
            except NotHereError as error:
                found.append(unreadable(str(error), here=True))
            if is_reference(payload):
                left_bytes -= found[-1].ByteSize()
        return found

    async def _decode_reference_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        decoded: list[Payload] = []
        for payload in payloads:
            try:
                decoded += await super()._decode_reference_payload_sequence([payload])
            except RuntimeError:
                decoded.append(unreadable("it is marked as a storage reference and is none"))
        return decoded
