"""One payload compressed and unpacked, with zlib."""

import zlib

from temporalio.api.common.v1 import Payload

from countersign.agent_client.payloads.unreadable import unreadable

COMPRESSED = b"binary/zlib"
_LEVEL = 1
_LARGEST_BYTES = 64 * 1024 * 1024
"""What a payload may unpack to: its sender may be anybody."""


def compressed(payload: Payload) -> Payload:
    """The payload, smaller; the same one if that saves nothing."""
    data = zlib.compress(payload.SerializeToString(deterministic=True), _LEVEL)
    return Payload(metadata={"encoding": COMPRESSED}, data=data) if len(data) < len(payload.data) else payload


def unpacked(payload: Payload) -> Payload:
    """What was compressed; a marker if it can't be unpacked."""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(payload.data, _LARGEST_BYTES)
        if not unpacking.eof:
            return unreadable(f"it is compressed, and cut off or larger than {_LARGEST_BYTES:,} bytes")
        return Payload.FromString(data)
    except Exception:  # of zlib or a protobuf parser: its sender chose the bytes
        return unreadable("it is marked as compressed and is not")
