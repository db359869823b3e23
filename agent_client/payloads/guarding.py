"""What stands around every storage driver: claims are checked, errors named, blobs kept in memory for a while."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from countersign.agent_client.payloads.errors import NotHereError, StorageError
from countersign.agent_client.payloads.owners import owned
from countersign.agent_client.payloads.unreadable import unreadable

AGAIN = "until then tasks are tried again, and nothing is lost"

REPEATED_BYTES = 16 * 1024 * 1024
"""What the blobs that a message names more than once may weigh, beside the first of each: a reference weighs little,
and its sender may be anybody."""

_PROBE = Payload(metadata={"encoding": b"binary/plain"}, data=b"countersign was here")

ClaimCheck = Callable[[StorageDriverClaim], str | None]
"""What a claim names, if it is of a driver's form and of a store in the settings; None if not."""


class BlobCache:
    """Stored values read or written lately, by driver and name; the oldest go first. Safe to share.

    Args:
        limit_bytes: What they may weigh together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._bytes = limit_bytes, 0
        self._blobs: OrderedDict[tuple[str, str], Payload] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, driver: str, name: str) -> Payload | None:
        """A copy, or None."""
        with self._lock:
            found = self._blobs.get((driver, name))
            if found is None:
                return None
            self._blobs.move_to_end((driver, name))
            return _copy(found)

    def put(self, driver: str, name: str, payload: Payload) -> None:
        """Keep a copy, if it fits."""
        size = payload.ByteSize()
        with self._lock:
            if (driver, name) in self._blobs or size > self._limit_bytes:
                return
            self._blobs[driver, name] = _copy(payload)
            self._bytes += size
            while self._bytes > self._limit_bytes:
                _, oldest = self._blobs.popitem(last=False)
                self._bytes -= oldest.ByteSize()


class GuardedStore(StorageDriver):
    """A driver that is asked only for what is ours, and no more often than needed.

    Args:
        inner: The driver.
        named: Its form of claims.
        cache: Shared by all drivers of a data converter.
        place: The store, in words for errors.
    """

    def __init__(self, inner: StorageDriver, named: ClaimCheck, cache: BlobCache, place: str) -> None:
        self._inner, self._named, self._cache, self._place = inner, named, cache, place

    def name(self) -> str:
        """See temporalio."""
        return self._inner.name()

    def type(self) -> str:
        """See temporalio."""
        return self._inner.type()

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """See temporalio.

        Raises:
            StorageError: If the store does not take them.
        """
        try:
            claims = await self._inner.store(owned(context), payloads)
        except Exception as error:  # of whatever client the driver uses
            raise StorageError(
                f"{len(payloads)} value(s) can't be stored in {self._place} ({_cause(error)}); "
                f"check the store and this process's access to it: {AGAIN}"
            ) from error
        for claim, payload in zip(claims, payloads, strict=True):
            if (name := self._named(claim)) is not None:
                self._cache.put(self.name(), name, payload)
        return claims

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """See temporalio. A claim that is not ours becomes a marker, and so does one that comes too often.

        Raises:
            NotHereError: If a blob of ours is missing.
            StorageError: If one is damaged or out of reach.
        """
        named = [self._named(claim) for claim in claims]
        first: dict[str, StorageDriverClaim] = {}
        for name, claim in zip(named, claims, strict=True):
            if name is not None:
                first.setdefault(name, claim)
        read = await asyncio.gather(*(self._one(context, claim, name) for name, claim in first.items()))
        return self._each(named, dict(zip(first, read, strict=True)))

    def _each(self, named: Sequence[str | None], found: Mapping[str, Payload]) -> list[Payload]:
        """The blobs in the order of their claims, a copy for each, as long as the repeated ones are not too large."""
        payloads: list[Payload] = []
        given: set[str] = set()
        left_bytes = REPEATED_BYTES
        for name in named:
            if name is None:
                payloads.append(unreadable(f"its storage reference names nothing in {self._place}"))
                continue
            payload = found[name]
            if name in given:
                left_bytes -= payload.ByteSize()
                payload = _copy(payload) if left_bytes >= 0 else unreadable("its storage reference comes too often")
            given.add(name)
            payloads.append(payload)
        return payloads

    async def probe(self) -> None:
        """Write and read a few bytes, always the same.

        Raises:
            StorageError: If the store does not take them, or not give them back.
        """
        context = StorageDriverStoreContext()
        try:
            claims = await self._inner.store(context, [_PROBE])
            [found] = await self._inner.retrieve(StorageDriverRetrieveContext(), claims)
        except Exception as error:  # of whatever client the driver uses
            raise StorageError(
                f"{self._place} can't be used ({_cause(error)}); check COUNTERSIGN_STORAGE, and this process's "
                "access to it: reading, writing, listing"
            ) from error
        if found != _PROBE:
            raise StorageError(f"{self._place} gave back something else than was stored there")

    async def _one(self, context: StorageDriverRetrieveContext, claim: StorageDriverClaim, name: str) -> Payload:
        if (known := self._cache.get(self.name(), name)) is not None:
            return known
        try:
            [payload] = await self._inner.retrieve(context, [claim])
        except Exception as error:  # of whatever client the driver uses
            missing = isinstance(_bottom(error), FileNotFoundError)
            raise (NotHereError if missing else StorageError)(
                f"blob {name} can't be read from {self._place} ({_cause(error)}); "
                f"restore it, or check this process's access to the store: {AGAIN}"
            ) from error
        self._cache.put(self.name(), name, payload)
        return payload


def _copy(payload: Payload) -> Payload:
    copy = Payload()
    copy.CopyFrom(payload)
    return copy


def _bottom(error: BaseException) -> BaseException:
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def _cause(error: BaseException) -> str:
    """What went wrong at the bottom, in one line: the SDK's drivers wrap it in an error that names the blob only."""
    found = _bottom(error)
    return " ".join(f"{type(found).__name__}: {found}".split())[:500]
