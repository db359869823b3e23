"""A conversation's messages in external storage: read where a model needs them, written once they weigh enough.

Storage is the data converter's: its codec and its drivers. Without drivers nothing is stored, and the conversation
travels with every call.
"""

import base64
import logging
from collections import OrderedDict
from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter

from countersign.agent_core.conversation import SEGMENT_BYTES
from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import Piece, StoredRange, StoredSegment

logger = logging.getLogger(__name__)

CACHE_BYTES = 64_000_000
"""What this process remembers of what it has read and written, as JSON."""


INLINE_BYTES = 1_100
"""Messages that a codec has made smaller than this need no storage: they are their own reference."""


class Segments:
    """Messages in external storage.

    Args:
        cache_bytes: How much is remembered.
    """

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._cache_bytes = cache_bytes
        self._bytes = 0
        self._cached: OrderedDict[str, tuple[list[Message], int]] = OrderedDict()

    async def messages(self, pieces: Sequence[Piece], converter: DataConverter) -> list[Message]:
        """All messages of a conversation. They are shared with other calls and must not be changed.

        Raises:
            Exception: Whatever the storage's driver raises if it can't read one.
        """
        read: dict[str, list[Message]] = {}
        wanted: list[StoredSegment] = []
        for piece in pieces:
            if isinstance(piece, StoredSegment) and piece.reference in self._cached:
                self._cached.move_to_end(piece.reference)
                read[piece.reference] = self._cached[piece.reference][0]
            elif isinstance(piece, StoredSegment):
                wanted.append(piece)
        for segment, content in zip(wanted, await _read(wanted, converter), strict=True):
            read[segment.reference] = content
            self._remember(segment.reference, content, json_size(content))
        return [
            message
            for piece in pieces
            for message in (read[piece.reference] if isinstance(piece, StoredSegment) else piece)
        ]

    async def store(self, pieces: Sequence[Piece], converter: DataConverter) -> list[StoredRange]:
        """Put those messages into storage that weigh enough together.

        Returns:
            What is in storage now; nothing if there is no storage, or it is out of order: then the next call tries
            again.
        """
        stored: list[StoredRange] = []
        if converter.external_storage is None:
            return stored
        for start, content in _runs(pieces):
            size = json_size(content)
            if size < SEGMENT_BYTES:
                continue
            try:
                [payload] = await converter.encode([content])
            except Exception as error:
                logger.warning("%d messages stay out of storage: %s: %s", len(content), type(error).__name__, error)
                return stored
            if not payload.external_payloads and payload.ByteSize() > INLINE_BYTES:
                continue  # there is no storage
            reference = base64.b64encode(payload.SerializeToString(deterministic=True)).decode()
            stored.append(StoredRange(start=start, segment=StoredSegment(messages=len(content), reference=reference)))
            self._remember(reference, content, size)
        return stored

    def _remember(self, reference: str, content: list[Message], size: int) -> None:
        if reference not in self._cached:
            self._cached[reference] = (content, size)
            self._bytes += size
        while self._bytes > self._cache_bytes:
            _, (_, gone) = self._cached.popitem(last=False)
            self._bytes -= gone


def _runs(pieces: Sequence[Piece]) -> list[tuple[int, list[Message]]]:
    """The messages that are not in storage, as far as they stand together, with the place of the first one."""
    runs: list[tuple[int, list[Message]]] = []
    place, apart = 0, True
    for piece in pieces:
        if isinstance(piece, StoredSegment):
            place, apart = place + piece.messages, True
            continue
        if apart:
            runs.append((place, []))
        runs[-1][1].extend(piece)
        place, apart = place + len(piece), False
    return runs


async def _read(segments: Sequence[StoredSegment], converter: DataConverter) -> list[list[Message]]:
    payloads = [Payload.FromString(base64.b64decode(segment.reference)) for segment in segments]
    return await converter.decode(payloads) if payloads else []
