"""Blobs in S3 and Google Cloud Storage, by the SDK's drivers, so that other languages' SDKs read them too.

The drivers' clients here are the vendors' own blocking ones, in threads: they belong to no event loop and need
no closing, and boto3 is what `strands-agents` brings anyway (aioboto3 would pin another version of its core).
The only place outside activities/providers where vendors' SDKs are imported; late, because they are extras.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.aws.s3driver import S3StorageDriver, S3StorageDriverClient
from temporalio.contrib.gcp.gcsdriver import GCSStorageDriver, GCSStorageDriverClient
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from countersign.agent_client.payloads.errors import PayloadSettingsError
from countersign.agent_client.payloads.guarding import ClaimCheck
from countersign.agent_client.payloads.owners import nameable
from countersign.agent_client.payloads.settings import Location
from countersign.agent_client.payloads.threads import in_thread
from countersign.agent_core.extras import how_to_install

S3_NAME, S3_FIELD = "aws.s3driver", "key"
GCS_NAME, GCS_FIELD = "gcp.gcsdriver", "object_name"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CONNECT_S, _READ_S, _ATTEMPTS = 3, 10, 3


def s3_driver(place: Location) -> StorageDriver:
    """A driver that writes to a bucket, and reads any.

    Raises:
        PayloadSettingsError: If boto3 is not installed.
    """
    try:
        import boto3  # noqa: F401  # used when first needed
    except ImportError:
        raise PayloadSettingsError(f"S3 needs boto3; {how_to_install('s3')}") from None
    return _Prefixed(S3StorageDriver(S3Objects(place.prefix), place.root), S3_FIELD, place.prefix)


def gcs_driver(place: Location) -> StorageDriver:
    """A driver that writes to a bucket, and reads any.

    Raises:
        PayloadSettingsError: If google-cloud-storage is not installed.
    """
    try:
        import google.cloud.storage  # noqa: F401  # used when first needed
    except ImportError:
        raise PayloadSettingsError(f"Google Cloud Storage needs its client; {how_to_install('gcs')}") from None
    return _Prefixed(GCSStorageDriver(GCSObjects(place.prefix), place.root), GCS_FIELD, place.prefix)


def claim_check(field: str, places: Sequence[Location]) -> ClaimCheck:
    """What a claim of the SDK's bucket drivers names, if it lies in one of these places.

    Args:
        field: Where the driver puts the object's name.
        places: Buckets and prefixes; nothing else is ever read.
    """

    def named(claim: StorageDriverClaim) -> str | None:
        data = claim.claim_data
        bucket, key, digest = data.get("bucket"), data.get(field, ""), data.get("hash_value", "")
        if data.get("hash_algorithm") != "sha256" or not _DIGEST.fullmatch(digest):
            return None
        ours = any(place.root == bucket and key.startswith(f"{place.prefix}v0/") for place in places)
        return f"{bucket}/{key}" if ours and key.endswith(f"/d/sha256/{digest}") else None

    return named


class _Prefixed(StorageDriver):
    """Puts the prefix into claims: the clients below put it into the names of what is written, which it keeps short."""

    def __init__(self, inner: StorageDriver, field: str, prefix: str) -> None:
        self._inner, self._field, self._prefix = inner, field, prefix

    def name(self) -> str:
        return self._inner.name()

    def type(self) -> str:
        return self._inner.type()

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        if isinstance(target := context.target, StorageDriverWorkflowInfo) and target.id is not None:
            context = StorageDriverStoreContext(replace(target, id=nameable(target.id)))
        claims = await self._inner.store(context, payloads)
        return [
            StorageDriverClaim({**claim.claim_data, self._field: self._prefix + claim.claim_data[self._field]})
            for claim in claims
        ]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        return await self._inner.retrieve(context, claims)


class S3Objects(S3StorageDriverClient):
    """S3 by boto3, which takes region, endpoint and credentials from its own settings (AWS_* variables and files).

    Args:
        prefix: Put before the keys of what is written.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self._lock = prefix, Lock()

    @cached_property
    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        retries: Any = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
        config = Config(connect_timeout=_CONNECT_S, read_timeout=_READ_S, retries=retries)
        return boto3.session.Session().client("s3", config=config)

    def _connected(self) -> Any:
        with self._lock:  # making a client is not thread-safe; using one is
            return self._client

    async def object_exists(self, *, bucket: str, key: str) -> bool:
        """See temporalio."""
        return await in_thread(lambda: self._exists(bucket, self._prefix + key))

    async def put_object(self, *, bucket: str, key: str, data: bytes) -> None:
        """See temporalio."""
        await in_thread(lambda: self._connected().put_object(Bucket=bucket, Key=self._prefix + key, Body=data))

    async def get_object(self, *, bucket: str, key: str) -> bytes:
        """See temporalio; the key is that of a claim, with its prefix."""
        return await in_thread(lambda: self._read(bucket, key))

    def _exists(self, bucket: str, key: str) -> bool:
        from botocore.exceptions import ClientError

        try:
            self._connected().head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                return False
            raise
        return True

    def _read(self, bucket: str, key: str) -> bytes:
        client = self._connected()
        try:
            data: bytes = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except client.exceptions.NoSuchKey as error:
            raise FileNotFoundError(f"NoSuchKey: bucket {bucket} has no {key}") from error
        return data


class GCSObjects(GCSStorageDriverClient):
    """Google Cloud Storage by its own client, which takes credentials from the environment.

    Args:
        prefix: Put before the names of what is written.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self._lock = prefix, Lock()

    @cached_property
    def _client(self) -> Any:
        from google.cloud import storage

        return storage.Client()

    def _blob(self, bucket: str, name: str) -> Any:
        with self._lock:
            return self._client.bucket(bucket).blob(name)

    async def object_exists(self, *, bucket: str, object_name: str) -> bool:
        """See temporalio."""
        return await in_thread(lambda: bool(self._blob(bucket, self._prefix + object_name).exists(timeout=_READ_S)))

    async def put_object(self, *, bucket: str, object_name: str, data: bytes) -> None:
        """See temporalio."""
        await in_thread(lambda: self._write(bucket, self._prefix + object_name, data))

    async def get_object(self, *, bucket: str, object_name: str) -> bytes:
        """See temporalio; the name is that of a claim, with its prefix."""
        return await in_thread(lambda: self._read(bucket, object_name))

    def _read(self, bucket: str, name: str) -> bytes:
        from google.api_core.exceptions import NotFound

        blob = self._blob(bucket, name)
        try:
            data: bytes = blob.download_as_bytes(timeout=_READ_S)
        except NotFound as error:
            if not blob.bucket.exists(timeout=_READ_S):
                raise
            raise FileNotFoundError(f"NotFound: bucket {bucket} has no {name}") from error
        return data

    def _write(self, bucket: str, name: str, data: bytes) -> None:
        from google.api_core.exceptions import PreconditionFailed

        try:
            self._blob(bucket, name).upload_from_string(
                data, content_type="application/octet-stream", if_generation_match=0, timeout=_READ_S
            )
        except PreconditionFailed:
            return  # somebody else has written the same content meanwhile
