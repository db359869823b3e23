"""Blobs in a folder: one file each, named by the SHA-256 of what is in it. Processes may share the folder.

Each session has a folder of its own in it, `sessions/<namespace>/<session id>`, that may be deleted with the
session and never before: pieces of a conversation are written once and read for as long as it lasts, so no file's
age says whether it is still needed. What belongs to no session stands in folders of two hexadecimal digits; so
does all that was written before sessions had folders.

A file is written beside its place and renamed into it, so nobody ever sees half of one. It is readable by its
owner only. One that is there already, and whole, is not written again.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from countersign.agent_client.payloads.threads import in_thread

NAME = "countersign.file"
CLAIM, OWNER = "sha256", "owner"
SESSIONS = "sessions"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SAFE = r"(?!\.)[A-Za-z0-9_.~%-]{1,200}"  # what `_safe` makes: no file name of another kind is ever built
_OWNER = re.compile(f"{_SAFE}/{_SAFE}")


def digest_of(claim: StorageDriverClaim) -> str | None:
    """The digest that a claim names, or None if it is not of this driver's form: it would reach the file system."""
    given, owner = claim.claim_data.get(CLAIM, ""), claim.claim_data.get(OWNER)
    if not _DIGEST.fullmatch(given) or (owner is not None and not _OWNER.fullmatch(owner)):
        return None
    return given if claim.claim_data.keys() <= {CLAIM, OWNER} else None


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
        owner = _owner(context)
        return await in_thread(lambda: [self._store(blob, owner) for blob in blobs])

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """See temporalio.

        Raises:
            FileNotFoundError: If a blob is in none of the folders.
            ValueError: If one is damaged, or a claim is none of this driver.
        """
        return await in_thread(lambda: [self._retrieve(claim) for claim in claims])

    def _store(self, blob: bytes, owner: str | None) -> StorageDriverClaim:
        digest = hashlib.sha256(blob).hexdigest()
        path = _path(self._folders[0], digest, owner)
        try:
            whole = path.read_bytes() == blob  # a damaged one of the right size is written anew
        except FileNotFoundError:
            whole = False
        if not whole:
            _make_folder(path.parent)
            _write(path, blob)
        return StorageDriverClaim({CLAIM: digest} if owner is None else {CLAIM: digest, OWNER: owner})

    def _retrieve(self, claim: StorageDriverClaim) -> Payload:
        digest = digest_of(claim)
        if digest is None:
            raise ValueError("the claim names no SHA-256 digest")
        paths = [_path(folder, digest, claim.claim_data.get(OWNER)) for folder in self._folders]
        damage = ""
        for path in paths:
            try:
                blob = path.read_bytes()
            except FileNotFoundError:
                continue
            if (found := hashlib.sha256(blob).hexdigest()) == digest:
                return Payload.FromString(blob)
            damage = damage or f"{path} is damaged: its SHA-256 is {found}"  # a later folder may have it whole
        if damage:
            raise ValueError(damage)
        if absent := [folder for folder in self._folders if not folder.is_dir()]:
            raise OSError(f"no folder {absent[0]}; is it mounted?")
        raise FileNotFoundError(f"no file {' nor '.join(map(str, paths))}")


def _owner(context: StorageDriverStoreContext) -> str | None:
    """The folder of the session that a value is for, or None."""
    target = context.target
    if not isinstance(target, StorageDriverWorkflowInfo) or not target.namespace or not target.id:
        return None
    return f"{_safe(target.namespace)}/{_safe(target.id)}"


def _safe(name: str) -> str:
    """A name as a file's name: percent-encoded, no dot in front. A long one is cut; its digest and "%cut" follow."""
    found = quote(name, safe="")
    if found.startswith("."):
        found = f"%2E{found[1:]}"
    return found if len(found) <= 200 else f"{found[:150]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}%cut"


def _path(folder: Path, digest: str, owner: str | None) -> Path:
    return folder / digest[:2] / digest if owner is None else folder / SESSIONS / owner / digest


def _make_folder(folder: Path) -> None:
    """Make a folder, and those that it is in, for its owner only; it survives a power cut."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync(folder.parent)


def _write(path: Path, blob: bytes) -> None:
    """Write a file that is there whole or not at all, after a power cut too."""
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
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
