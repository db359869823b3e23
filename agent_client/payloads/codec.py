"""The codec: payloads compressed and encrypted on their way out, and back.

What is not a value is left alone in both directions: a reference to a stored value, and what has been through
this codec already. So a payload that an activity has encoded by hand may be passed on as a `RawValue`.
"""

from collections.abc import Sequence
from typing import Self

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from countersign.agent_client.payloads.compression import (
    COMPRESSED,
    FOREIGN_MESSAGE_BYTES,
    OWN_MESSAGE_BYTES,
    Unpacking,
    compressed,
)
from countersign.agent_client.payloads.encryption import ENCRYPTED, decrypted, encrypted
from countersign.agent_client.payloads.errors import DecryptionError
from countersign.agent_client.payloads.keys import KeyRing
from countersign.agent_client.payloads.owners import session_of
from countersign.agent_client.payloads.references import is_reference
from countersign.agent_client.payloads.unreadable import UNREADABLE, unreadable

COMPRESS_FROM_BYTES = 16 * 1024
_DONE = {COMPRESSED, ENCRYPTED, UNREADABLE}


class OurCodec(PayloadCodec, WithSerializationContext):
    """Compression of large values that only our workers read, then encryption.

    Args:
        keys: Empty to encrypt nothing; what is encrypted then fails by name.
        compress: Whether to compress at all.
        worker: Whether a worker uses it.
        own: Whether the payloads at hand are read by our workers only; so is what an activity encodes by hand.
        unpacking: Of all that is decoded; if None, of the payloads of each call.
    """

    def __init__(
        self,
        keys: KeyRing,
        *,
        compress: bool,
        worker: bool = False,
        own: bool = True,
        unpacking: Unpacking | None = None,
    ) -> None:
        self._keys, self._compress, self._worker, self._own = keys, compress, worker, own
        self._unpacking = unpacking

    @property
    def from_anybody(self) -> bool:
        """True for the arguments of a session, on a worker: whoever may send signals can send any payload.

        All else that a worker decodes was written by workers. It is never refused: the task is tried again.
        """
        return self._worker and not self._own

    def with_context(self, context: SerializationContext) -> Self:
        """See temporalio."""
        own = isinstance(context, ActivitySerializationContext) or (
            isinstance(context, WorkflowSerializationContext) and session_of(context.workflow_id) != context.workflow_id
        )
        if own == self._own:
            return self
        return type(self)(self._keys, compress=self._compress, worker=self._worker, own=own, unpacking=self._unpacking)

    def for_one_message(self) -> Self:
        """A codec for payloads that came together and are decoded one by one: how much they unpack to is bounded."""
        unpacking = Unpacking(OWN_MESSAGE_BYTES)
        return type(self)(self._keys, compress=self._compress, worker=self._worker, own=self._own, unpacking=unpacking)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See temporalio."""
        return [self._encoded(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See temporalio. What is compressed is unpacked as long as the payloads are not too large together.

        Raises:
            DecryptionError: If a payload's key is not here, and it is not from anybody; then it becomes a marker.
        """
        unpacking = self._unpacking or Unpacking(OWN_MESSAGE_BYTES if self._own else FOREIGN_MESSAGE_BYTES)
        return [self._decoded(payload, unpacking) for payload in payloads]

    def _encoded(self, payload: Payload) -> Payload:
        if is_reference(payload) or payload.metadata.get("encoding") in _DONE:
            return payload
        if self._compress and self._own and len(payload.data) >= COMPRESS_FROM_BYTES:
            payload = compressed(payload)
        key = self._keys.first
        return encrypted(payload, key) if key is not None else payload

    def _decoded(self, payload: Payload, unpacking: Unpacking) -> Payload:
        if is_reference(payload):
            return payload
        if payload.metadata.get("encoding") == ENCRYPTED:
            try:
                payload = decrypted(payload, self._keys)
            except DecryptionError as error:
                if not self.from_anybody:
                    raise
                payload = unreadable(str(error), here=True)
        if payload.metadata.get("encoding") == COMPRESSED:
            payload = unpacking.unpacked(payload)
        return payload
