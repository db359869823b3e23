"""Blobs in a folder: one file each, named by the SHA-256 of what is in it. Processes may share the folder.

A file is written beside its place and renamed into it, so nobody ever sees half of one. It is readable by its
owner only. One that is there already is not written again; its time of change is renewed, so that files may be
deleted by their age.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from countersign.agent_client.payloads.threads import in_thread

NAME = "countersign.file"
CLAIM = "sha256"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest_of(claim: StorageDriverClaim) -> str | None:
    """The digest that a claim names, or None if it is not of this driver's form: it would reach the file system."""
    given = claim.claim_data.get(CLAIM, "")
    return given if len(claim.claim_data) == 1 and _DIGEST.fullmatch(given) else None


class FileStore(StorageDriver):
    """Storage driver for folders.

    Args:
        folders: The first one is written to, all are read. Made when first written to.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders

    def name(self) -> str:
        """See temporalio."""
        return NAME

    def type(self) -> str:
        """See temporalio."""
        return NAME

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """See temporalio.

        Raises:
            OSError: If the folder can't be written to.
        """
        blobs = [payload.SerializeToString(deterministic=True) for payload in payloads]
        return await in_thread(lambda: [self._store(blob) for blob in blobs])

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """See temporalio.

        Raises:
            FileNotFoundError: If a blob is in none of the folders.
            ValueError: If one is damaged, or a claim is none of this driver.
        """
        return await in_thread(lambda: [self._retrieve(claim) for claim in claims])

    def _store(self, blob: bytes) -> StorageDriverClaim:
        digest = hashlib.sha256(blob).hexdigest()
        path = _path(self._folders[0], digest)
        try:
            whole = path.read_bytes() == blob  # a damaged one of the right size is written anew
        except FileNotFoundError:
            whole = False
        if whole:
            os.utime(path)
        else:
            _write(path, blob)
        return StorageDriverClaim({CLAIM: digest})

    def _retrieve(self, claim: StorageDriverClaim) -> Payload:
        digest = digest_of(claim)
        if digest is None:
            raise ValueError("the claim names no SHA-256 digest")
        for folder in self._folders:
            try:
                blob = _path(folder, digest).read_bytes()
            except FileNotFoundError:
                continue
            if (found := hashlib.sha256(blob).hexdigest()) != digest:
                raise ValueError(f"{_path(folder, digest)} is damaged: its SHA-256 is {found}")
            return Payload.FromString(blob)
        if absent := [folder for folder in self._folders if not folder.is_dir()]:
            raise OSError(f"no folder {absent[0]}; is it mounted?")
        raise FileNotFoundError(f"no file {' nor '.join(str(_path(folder, digest)) for folder in self._folders)}")


def _path(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest


def _write(path: Path, blob: bytes) -> None:
    """Write a file that is there whole or not at all, after a power cut too."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # readable by its owner only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
