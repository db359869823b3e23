"""Which values are stored outside the history, and where: the SDK's external storage from our settings."""

from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    DataConverter,
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverSelectContext,
)

from countersign.agent_client.payloads import buckets, file_store
from countersign.agent_client.payloads.errors import NotHereError
from countersign.agent_client.payloads.file_store import FileStore
from countersign.agent_client.payloads.guarding import AGAIN, BlobCache, ClaimCheck, GuardedStore
from countersign.agent_client.payloads.owners import is_own
from countersign.agent_client.payloads.references import TolerantStorage, UnknownDriver
from countersign.agent_client.payloads.settings import FORMS, Location, PayloadSettings, Scheme

OWN_BYTES = 16 * 1024
"""From this size on, values that only our workers read are stored outside."""

BY_HAND_BYTES = 1024
"""From this size on what an activity encodes by hand is stored: a conversation's pieces, perhaps compressed."""

_KILOBYTE, _MEGABYTE = 1024, 1024 * 1024
_NAMES: dict[Scheme, str] = {"file": file_store.NAME, "s3": buckets.S3_NAME, "gs": buckets.GCS_NAME}


def external_storage(settings: PayloadSettings) -> ExternalStorage:
    """Where values go, and what is read back.

    Without a store in the settings nothing is stored; references to a store still fail by name.

    Raises:
        PayloadSettingsError: If a store's client is not installed.
    """
    places = settings.locations
    cache = BlobCache(settings.storage_cache_mb * _MEGABYTE)
    drivers: dict[Scheme, StorageDriver] = {}
    for scheme in _NAMES:
        of_it = [place for place in places if place.scheme == scheme]
        drivers[scheme] = _driver(scheme, of_it, cache) if of_it else _Missing(scheme)
    writer = drivers[places[0].scheme] if places else None
    shared_bytes = settings.storage_shared_from_kb * _KILOBYTE

    def selected(context: StorageDriverSelectContext, payload: Payload) -> StorageDriver | None:
        if context.target is None:
            return writer
        return writer if payload.ByteSize() >= (OWN_BYTES if is_own(context.target) else shared_bytes) else None

    return TolerantStorage(list(drivers.values()), driver_selector=selected, payload_size_threshold=BY_HAND_BYTES)


async def check_store(converter: DataConverter) -> None:
    """Fail early if large values could not be stored.

    Raises:
        StorageError: With the store and the reason.
    """
    storage = converter.external_storage
    if storage is None or storage.driver_selector is None:
        return
    writer = storage.driver_selector(StorageDriverSelectContext(), Payload())
    if isinstance(writer, GuardedStore):
        await writer.probe()


def _driver(scheme: Scheme, places: list[Location], cache: BlobCache) -> StorageDriver:
    inner: StorageDriver
    named: ClaimCheck
    if scheme == "file":
        inner, named = FileStore([Path(place.root) for place in places]), file_store.digest_of
    elif scheme == "s3":
        inner, named = buckets.s3_driver(places[0]), buckets.claim_check(buckets.S3_FIELD, places)
    else:
        inner, named = buckets.gcs_driver(places[0]), buckets.claim_check(buckets.GCS_FIELD, places)
    return GuardedStore(inner, named, cache, ", ".join(map(str, places)))


class _Missing(UnknownDriver):
    """A driver of ours that the settings do not have: its values may well be ours, so they wait."""

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(_NAMES[scheme])
        self._scheme = scheme

    async def retrieve(self, context: StorageDriverRetrieveContext, claims: Any) -> list[Payload]:
        """See temporalio.

        Raises:
            NotHereError: Always.
        """
        claim: StorageDriverClaim = claims[0]
        bucket = f", bucket {claim.claim_data['bucket']!r:.100}" if "bucket" in claim.claim_data else ""
        raise NotHereError(
            f"a value is stored outside the history (driver {self.name()}{bucket}), and this process has no "
            f"{self._scheme}:// store; set COUNTERSIGN_STORAGE to the workers' one ({FORMS}): {AGAIN}"
        )
