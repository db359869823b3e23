"""A conversation's messages in external storage: read where a model needs them, written once they weigh enough.

Storage is the data converter's: its codec and its drivers. Without drivers nothing is stored, and the conversation
travels with every call.
"""

import asyncio
import base64
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, StorageDriverSelectContext

from countersign.agent_core.conversation import SEGMENT_BYTES
from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.wire import Piece, StoredRange, StoredSegment

logger = logging.getLogger(__name__)

Converter = Callable[[], DataConverter]
"""Makes the data converter of the activity that is being run."""

CACHE_BYTES = 64_000_000
"""What a process remembers of what it has read and written, if nobody says."""

MESSAGE_BYTES = 1_500
"""What a message weighs in memory beside its text, about."""


LARGE_BYTES = 1_000_000
"""Small pieces that weigh so much together are stored once more, as one."""

STORE_S = 20.0
"""A store that takes longer is out of order: the model's answer does not wait for it."""

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

    async def messages(self, pieces: Sequence[Piece], converter: Converter) -> list[Message]:
        """All messages of a conversation, shared with other calls: whoever gives them away copies them.

        Args:
            pieces: The conversation.
            converter: Asked only if something is to be read.

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
        for segment, content in zip(wanted, await _read(wanted, converter()) if wanted else [], strict=True):
            read[segment.reference] = content
            self._remember(segment.reference, content, json_size(content))
        return [
            message
            for piece in pieces
            for message in (read[piece.reference] if isinstance(piece, StoredSegment) else piece)
        ]

    async def store(
        self, pieces: Sequence[Piece], conversation: Sequence[Message], converter: Converter
    ) -> list[StoredRange]:
        """Put those messages into storage that weigh enough together, and small pieces into one large one.

        Args:
            pieces: The conversation as it came.
            conversation: Its messages.
            converter: With the storage; asked only if something is to be written.

        Returns:
            What is in storage now; nothing if there is no storage, or it is out of order: then the next call tries
            again.
        """
        stored: list[StoredRange] = []
        encoder: DataConverter | None = None
        for start, count in [*_fresh(pieces), *_small(pieces)]:
            content = list(conversation[start : start + count])
            try:
                encoder = encoder or converter()
                if not _has_store(encoder):
                    return stored
                async with asyncio.timeout(STORE_S):
                    [payload] = await encoder.encode([content])
            except Exception as error:
                logger.warning("%d messages stay out of storage: %s: %s", count, type(error).__name__, error)
                return stored
            if not payload.external_payloads and payload.ByteSize() > INLINE_BYTES:
                return stored  # it takes larger values only
            reference = base64.b64encode(payload.SerializeToString(deterministic=True)).decode()
            size = json_size(content)
            segment = StoredSegment(messages=count, bytes=size, reference=reference)
            stored.append(StoredRange(start=start, segment=segment))
            self._remember(reference, content, size)
        return stored

    def _remember(self, reference: str, content: list[Message], size: int) -> None:
        if reference not in self._cached:
            weight = size + MESSAGE_BYTES * len(content)
            self._cached[reference] = (content, weight)
            self._bytes += weight
        while self._bytes > self._cache_bytes:
            _, (_, gone) = self._cached.popitem(last=False)
            self._bytes -= gone


def _fresh(pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Runs of messages that are not in storage and weigh enough: the place of the first one, and how many."""
    place, run = 0, 0
    weight = 0
    for piece in [*pieces, None]:
        if isinstance(piece, list):
            run, weight = run + len(piece), weight + json_size(piece)
            continue
        if weight >= SEGMENT_BYTES:
            yield place, run
        place, run, weight = place + run + (piece.messages if piece else 0), 0, 0


def _small(pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Runs of small pieces in storage that make a large one: a long conversation has few references."""
    place, run = 0, 0
    weight = 0
    for piece in pieces:
        count = len(piece) if isinstance(piece, list) else piece.messages
        if isinstance(piece, list) or piece.bytes >= LARGE_BYTES // 4:
            place, run, weight = place + run + count, 0, 0
            continue
        run, weight = run + count, weight + piece.bytes
        if weight >= LARGE_BYTES:
            yield place, run
            place, run, weight = place + run, 0, 0


def _has_store(converter: DataConverter) -> bool:
    storage = converter.external_storage
    if storage is None or storage.driver_selector is None:
        return storage is not None
    return storage.driver_selector(StorageDriverSelectContext(), Payload()) is not None


async def _read(segments: Sequence[StoredSegment], converter: DataConverter) -> list[list[Message]]:
    payloads = [Payload.FromString(base64.b64decode(segment.reference)) for segment in segments]
    untyped: list[Any] = [Any] * len(payloads)  # said, so that a worker's converter decodes them however large they are
    return await converter.decode(payloads, untyped)
