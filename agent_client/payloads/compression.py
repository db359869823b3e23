"""One payload compressed and unpacked, with zlib."""

import zlib

from temporalio.api.common.v1 import Payload

from countersign.agent_client.payloads.unreadable import unreadable

COMPRESSED = b"binary/zlib"
_LEVEL = 1

_PIECE_BYTES = 1024 * 1024

OWN_MESSAGE_BYTES = 64 * 1024 * 1024
"""What the payloads of one message of ours may unpack to together: a whole conversation."""

FOREIGN_MESSAGE_BYTES = 4 * 1024 * 1024
"""The same for a message that anybody may have sent: no more than Temporal takes of what is not compressed."""


def compressed(payload: Payload) -> Payload:
    """The payload, smaller; the same one if that saves nothing."""
    data = zlib.compress(payload.SerializeToString(deterministic=True), _LEVEL)
    return Payload(metadata={"encoding": COMPRESSED}, data=data) if len(data) < len(payload.data) else payload


class Unpacking:
    """Unpacks the payloads of one message, as long as they are not too large together.

    Args:
        limit_bytes: What they may unpack to.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = self._left_bytes = limit_bytes
        self._work_bytes = 2 * limit_bytes  # what is unpacked in vain takes as long

    def unpacked(self, payload: Payload) -> Payload:
        """What was compressed; a marker if it can't be unpacked, or is too large with what came before it."""
        try:
            data = self._data(payload.data)
            if data is None:
                return unreadable(
                    f"it is compressed, and cut off or, with what came with it, larger than {self._limit_bytes:,} bytes"
                )
            self._left_bytes -= len(data)
            return Payload.FromString(data)
        except Exception:  # of zlib or a protobuf parser: its sender chose the bytes
            return unreadable("it is marked as compressed and is not")

    def _data(self, packed: bytes) -> bytes | None:
        """What was compressed; None if it is cut off or too large."""
        unpacking, data = zlib.decompressobj(), bytearray()
        begin, piece = 0, b""
        while not unpacking.eof:
            if not piece:
                piece, begin = packed[begin : begin + _PIECE_BYTES], begin + _PIECE_BYTES
            at_end = not piece
            part = unpacking.decompress(piece, min(_PIECE_BYTES, self._work_bytes + 1))
            piece = unpacking.unconsumed_tail
            data += part
            self._work_bytes = max(0, self._work_bytes - len(part))
            cut_off = at_end and not part and not unpacking.eof
            if cut_off or len(data) > self._left_bytes or not self._work_bytes:
                return None
        return bytes(data)
