"""Blobs in a folder: whole or not there, private, once each, and only by their digests."""

import hashlib
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    StorageDriverWorkflowInfo,
)

from countersign.agent_client.payloads.errors import NotHereError, StorageError
from countersign.agent_client.payloads.file_store import FileStore, digest_of
from countersign.agent_client.payloads.guarding import BlobCache, GuardedStore
from countersign.agent_client.payloads.unreadable import UNREADABLE

STORE, RETRIEVE = StorageDriverStoreContext(), StorageDriverRetrieveContext()
VALUE = Payload(metadata={"encoding": b"json/plain"}, data=b'"value"')

WRITER = """
import asyncio, os, sys
from pathlib import Path
from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverStoreContext
from countersign.agent_client.payloads.file_store import FileStore
async def main():
    store = FileStore([Path(sys.argv[1])])
    while True:
        await store.store(StorageDriverStoreContext(), [Payload(data=os.urandom(300_000)) for _ in range(4)])
asyncio.run(main())
"""


def blobs(folder: Path) -> list[Path]:
    """Files with a digest's name."""
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


async def test_a_value_comes_back_from_another_process_s_store(tmp_path):
    """The folder is all that two workers need to share."""
    claims = await FileStore([tmp_path]).store(STORE, [VALUE])
    assert await FileStore([tmp_path]).retrieve(RETRIEVE, claims) == [VALUE]


async def test_equal_values_are_stored_once(tmp_path):
    """Storing again writes nothing."""
    store = FileStore([tmp_path])
    first = await store.store(STORE, [VALUE])
    [path] = blobs(tmp_path)
    inode = path.stat().st_ino
    assert await store.store(STORE, [VALUE, VALUE]) == first * 2
    assert blobs(tmp_path) == [path] and path.stat().st_ino == inode


def of_session(session_id: str, namespace: str = "default") -> StorageDriverStoreContext:
    return StorageDriverStoreContext(StorageDriverWorkflowInfo(namespace=namespace, id=session_id, type="AgentSession"))


@pytest.mark.parametrize(
    ("session_id", "name"),
    [("ada", "ada"), ("../../etc", "%2E.%2F..%2Fetc"), ("..", "%2E."), ("a/b c", "a%2Fb%20c"), ("x" * 900, None)],
    ids=["plain", "climbing", "dots", "encoded", "long"],
)
async def test_a_session_s_blobs_stand_in_a_folder_of_their_own(tmp_path, session_id, name):
    """It goes with the session; whatever the id is, the folder is in the store, and other sessions' stay."""
    store = guarded(tmp_path)
    [mine] = await store.store(of_session(session_id), [VALUE])
    [others] = await store.store(of_session("other"), [VALUE])
    assert await store.retrieve(RETRIEVE, [mine]) == [VALUE]
    [folder] = [path for path in (tmp_path / "sessions" / "default").iterdir() if path.name != "other"]
    assert name in (folder.name, None)
    shutil.rmtree(folder)
    assert await store.retrieve(RETRIEVE, [others]) == [VALUE]
    with pytest.raises(NotHereError):
        await store.retrieve(RETRIEVE, [mine])


async def test_blobs_are_their_owner_s_only(tmp_path):
    """Nobody else may read or write files and folders."""
    await FileStore([tmp_path / "store"]).store(STORE, [VALUE])
    await FileStore([tmp_path / "store"]).store(of_session("ada"), [VALUE])
    for path in (tmp_path / "store").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_process_killed_while_it_stores_leaves_no_half_of_a_blob(tmp_path):
    """Whatever bears a digest's name is whole."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(blobs(tmp_path)) < 10:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.name for path in blobs(tmp_path))


@pytest.mark.parametrize(
    "claim",
    [{}, {"sha256": "../../etc/passwd"}, {"sha256": "A" * 64}, {"sha256": "0" * 63}, {"sha256": "0" * 64 + "\n"},
     {"sha256": "0" * 64, "more": "x"}, {"key": "0" * 64},
     {"sha256": "0" * 64, "owner": "../x"}, {"sha256": "0" * 64, "owner": "n/.."}, {"sha256": "0" * 64, "owner": "n"},
     {"sha256": "0" * 64, "owner": "n/a/b"}, {"sha256": "0" * 64, "owner": ""}],
)  # fmt: skip
def test_only_digests_reach_the_file_system(claim):
    """A claim is foreign data: one that is no digest names nothing."""
    assert digest_of(StorageDriverClaim(claim)) is None


def guarded(*folders: Path, cache_bytes: int = 0) -> GuardedStore:
    return GuardedStore(FileStore(folders), digest_of, BlobCache(cache_bytes), "file:///store")


async def test_a_claim_of_another_form_becomes_a_marker(tmp_path):
    """It fails nothing; what is beside it is read."""
    store = guarded(tmp_path)
    [claim] = await store.store(STORE, [VALUE])
    first, second = await store.retrieve(RETRIEVE, [StorageDriverClaim({"sha256": "x"}), claim])
    assert first.metadata["encoding"] == UNREADABLE and second == VALUE


async def test_a_missing_blob_is_named_and_found_once_it_is_restored(tmp_path):
    """The error says which one and where; nothing remembers that it was missing."""
    store = guarded(tmp_path)
    [claim] = await store.store(STORE, [VALUE])
    [path] = blobs(tmp_path)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=rf"blob {path.name} can't be read from file:///store"):
        await store.retrieve(RETRIEVE, [claim])
    (tmp_path / "elsewhere").rename(path)
    assert await store.retrieve(RETRIEVE, [claim]) == [VALUE]


async def test_a_damaged_blob_is_named(tmp_path):
    """One flipped byte is found."""
    store = guarded(tmp_path)
    claims = await store.store(STORE, [VALUE])
    [path] = blobs(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StorageError, match=f"{path} is damaged"):
        await store.retrieve(RETRIEVE, claims)


async def test_a_damaged_blob_does_not_hide_a_whole_one(tmp_path):
    """What another folder has whole is read from there."""
    claims = await guarded(tmp_path / "old").store(STORE, [VALUE])
    await guarded(tmp_path / "new").store(STORE, [VALUE])
    [path] = blobs(tmp_path / "new")
    path.write_bytes(b"?")
    assert await guarded(tmp_path / "new", tmp_path / "old").retrieve(RETRIEVE, claims) == [VALUE]


async def test_storing_a_value_again_mends_its_damaged_blob(tmp_path):
    """A blob of the right size is not taken for whole."""
    store = guarded(tmp_path)
    claims = await store.store(STORE, [VALUE])
    [path] = blobs(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert await store.store(STORE, [VALUE]) == claims
    assert await store.retrieve(RETRIEVE, claims) == [VALUE]


async def test_a_folder_that_is_not_there_is_no_missing_blob(tmp_path):
    """A mount that is gone is an outage: whatever is read from it is read again, and never refused."""
    store = guarded(tmp_path / "mount")
    claims = await store.store(STORE, [VALUE])
    (tmp_path / "mount").rename(tmp_path / "gone")
    with pytest.raises(StorageError, match="is it mounted") as raised:
        await store.retrieve(RETRIEVE, claims)
    assert not isinstance(raised.value, NotHereError)


async def test_a_folder_that_is_no_longer_written_to_is_still_read(tmp_path):
    """After a move, old blobs come from the old folder."""
    claims = await guarded(tmp_path / "old").store(STORE, [VALUE])
    assert await guarded(tmp_path / "new", tmp_path / "old").retrieve(RETRIEVE, claims) == [VALUE]


async def test_what_was_read_lately_is_not_read_again(tmp_path):
    """A blob in memory needs no file; one that did not fit does."""
    large = Payload(data=b"x" * 900)
    store = guarded(tmp_path, cache_bytes=1000)
    small_claim, large_claim = await store.store(STORE, [VALUE, large])
    for path in blobs(tmp_path):
        path.unlink()
    assert await store.retrieve(RETRIEVE, [small_claim, large_claim]) == [VALUE, large]
    await store.store(STORE, [Payload(data=b"y" * 900)])  # drives both out
    for claim in (small_claim, large_claim):
        with pytest.raises(StorageError):
            await store.retrieve(RETRIEVE, [claim])
