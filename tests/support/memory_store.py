"""A storage driver that keeps everything in memory, counts what it does, and fails if it is told to."""

import hashlib
from dataclasses import replace

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, ExternalStorage, StorageDriver, StorageDriverClaim


class MemoryStore(StorageDriver):
    """External storage without anything outside."""

    def __init__(self):
        self.blobs: dict[str, bytes] = {}
        self.reads = 0
        self.broken = False

    def name(self):
        return "memory"

    async def store(self, context, payloads):
        if self.broken:
            raise ConnectionError("the store is out of order")
        claims = []
        for payload in payloads:
            content = payload.SerializeToString(deterministic=True)
            key = hashlib.sha256(content).hexdigest()
            self.blobs[key] = content
            claims.append(StorageDriverClaim({"sha256": key}))
        return claims

    async def retrieve(self, context, claims):
        self.reads += len(claims)
        return [Payload.FromString(self.blobs[claim.claim_data["sha256"]]) for claim in claims]

    def converter(self, threshold=1_000) -> DataConverter:
        storage = ExternalStorage(drivers=[self], payload_size_threshold=threshold)
        return replace(pydantic_data_converter, external_storage=storage)
