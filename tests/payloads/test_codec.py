"""Encryption and compression: what comes out, what is left alone, and what is said of what can't be read."""

import base64
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.converter import ActivitySerializationContext, WorkflowSerializationContext

from countersign.agent_client.payloads.codec import OurCodec
from countersign.agent_client.payloads.compression import COMPRESSED
from countersign.agent_client.payloads.encryption import ENCRYPTED
from countersign.agent_client.payloads.errors import DecryptionError
from countersign.agent_client.payloads.keys import Key, KeyRing
from countersign.agent_client.payloads.unreadable import UNREADABLE, OurPayloadConverter
from countersign.agent_core.errors import UnreadableHereError

OLD, NEW, OTHER_NEW = Key("old", b"o" * 32), Key("new", b"n" * 32), Key("new", b"?" * 32)
OURS = [
    ActivitySerializationContext("default", None, None, None, "s", "AgentSession", False),
    WorkflowSerializationContext("default", "s/cycle-12"),
]
VALUE = Payload(metadata={"encoding": b"json/plain"}, data=b'"a secret"')


def codec(*keys: Key, compress: bool = False) -> OurCodec:
    return OurCodec(KeyRing(keys, Path("the-keys")), compress=compress)


async def through(payload: Payload, out: OurCodec, back: OurCodec) -> Payload:
    [encoded] = await out.encode([payload])
    [decoded] = await back.decode([encoded])
    return decoded


@given(st.dictionaries(st.text(), st.binary()), st.binary())
async def test_any_payload_comes_back_as_it_was(metadata, data):
    """Metadata and data, whatever they are."""
    payload = Payload(metadata=metadata, data=data)
    assert await through(payload, codec(NEW), codec(NEW)) == payload


async def test_equal_payloads_become_equal_blobs():
    """So that a store holds them once; with another key, or another byte, they differ."""
    [one], [same] = await codec(NEW).encode([VALUE]), await codec(NEW).encode([VALUE])
    assert one == same and VALUE.data not in one.SerializeToString()
    [other_key] = await codec(OTHER_NEW).encode([VALUE])
    [other_value] = await codec(NEW).encode([Payload(metadata=VALUE.metadata, data=b'"a secreT"')])
    assert len({one.data[:12], other_key.data[:12], other_value.data[:12]}) == 3


async def test_keys_rotate():
    """The first key encrypts; what the old one encrypted is still read."""
    [encoded] = await codec(NEW, OLD).encode([VALUE])
    assert encoded.metadata["encryption-key-id"] == b"new"
    assert await through(VALUE, codec(OLD), codec(NEW, OLD)) == VALUE


@pytest.mark.parametrize(
    ("mine", "words"),
    [((OLD,), "the-keys holds only old"), ((), "COUNTERSIGN_ENCRYPTION_KEYS"), ((OTHER_NEW,), "another key")],
    ids=["missing", "no-keys", "wrong"],
)
async def test_a_key_that_is_not_here_is_named(mine, words):
    """The value may well be ours: an error, so that it is tried again."""
    with pytest.raises(DecryptionError, match="'new'") as raised:
        await through(VALUE, codec(NEW), codec(*mine))
    assert words in str(raised.value)


@pytest.mark.parametrize("mine", [(OLD,), (), (OTHER_NEW,)], ids=["missing", "no-keys", "wrong"])
async def test_a_worker_raises_for_a_missing_key_only_in_what_workers_wrote(mine):
    """An argument of a session, that anybody may have sent, becomes a marker; whoever decodes it is told why."""
    worker = OurCodec(KeyRing(mine, Path("the-keys")), compress=False, worker=True)
    [encoded] = await codec(NEW).encode([VALUE])
    session = worker.with_context(WorkflowSerializationContext("default", "s"))
    [marker] = await session.decode([encoded])
    with pytest.raises(UnreadableHereError, match="'new'"):
        OurPayloadConverter().from_payload(marker)
    client = codec(*mine).with_context(WorkflowSerializationContext("default", "s"))
    for strict in (worker, client, *(session.with_context(context) for context in OURS)):
        with pytest.raises(DecryptionError, match="'new'"):
            await strict.decode([encoded])


@given(st.data())
async def test_a_damaged_payload_becomes_a_marker(data):
    """Whatever byte was changed, or how much cut off: never an exception, never another value."""
    [encoded] = await codec(NEW).encode([VALUE])
    place = data.draw(st.integers(0, len(encoded.data) - 1))
    flip = data.draw(st.integers(1, 255))
    changed = bytearray(encoded.data)
    changed[place] ^= flip
    for damaged in (bytes(changed), encoded.data[:place]):
        [decoded] = await codec(NEW).decode([Payload(metadata=encoded.metadata, data=damaged)])
        assert decoded.metadata["encoding"] == UNREADABLE


async def test_what_temporal_s_own_samples_encrypt_is_read():
    """Without our check value; so a client in another language needs no codec of ours."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = b"0" * 12
    data = nonce + AESGCM(NEW.secret).encrypt(nonce, VALUE.SerializeToString(), None)
    foreign = Payload(metadata={"encoding": ENCRYPTED, "encryption-key-id": b"new"}, data=data)
    assert await codec(NEW).decode([foreign]) == [VALUE]


async def test_references_and_what_is_encoded_are_left_alone():
    """In both directions: a payload passed on as a raw value is not wrapped again."""
    reference = {"encoding": b"json/protobuf", "messageType": b"temporal.api.sdk.v1.ExternalStorageReference"}
    old = {"encoding": b"json/external-storage-reference"}
    both = [Payload(metadata=kind, data=b"{}") for kind in (reference, old)]
    assert await codec(NEW).encode(both) == both == await codec(NEW).decode(both)
    once = await codec(NEW, compress=True).encode([VALUE])
    assert await codec(NEW).encode(once) == once


@pytest.mark.parametrize("context", OURS, ids=["activity", "cycle"])
async def test_large_values_for_our_workers_are_compressed(context):
    """Before encryption; small ones and those that don't shrink stay as they are; all are read without context."""
    large, small = Payload(data=b"x" * 20_000), Payload(data=b"x" * 200)
    [packed, kept] = await codec(compress=True).with_context(context).encode([large, small])
    assert packed.metadata["encoding"] == COMPRESSED and len(packed.data) < 200 and kept == small
    assert await codec().decode([packed, kept]) == [large, small]
    [sealed] = await codec(NEW, compress=True).with_context(context).encode([large])
    assert len(sealed.data) < 300 and await codec(NEW).decode([sealed]) == [large]


async def test_what_clients_read_is_not_compressed():
    """A session's arguments and results, for clients in any language."""
    large = Payload(data=b"x" * 20_000)
    mine = codec(compress=True).with_context(WorkflowSerializationContext("default", "s"))
    assert await mine.encode([large]) == [large]


def bomb(size):
    """A compressed payload whose data weighs so much."""
    plain = Payload(metadata={"encoding": b"json/plain"}, data=b"0" * size)
    return Payload(metadata={"encoding": COMPRESSED}, data=zlib.compress(plain.SerializeToString()))


async def test_a_bomb_becomes_a_marker():
    """Nobody's few bytes fill the worker's memory."""
    [decoded] = await codec().decode([bomb(65 * 1024 * 1024)])
    assert decoded.metadata["encoding"] == UNREADABLE and b"larger than" in decoded.data


async def test_what_anybody_may_send_unpacks_to_what_fits_uncompressed():
    """A signal, an update, a start or a memo gains nothing by being compressed."""
    theirs = codec().with_context(WorkflowSerializationContext("default", "s"))
    [small, large] = await theirs.decode([bomb(1024 * 1024), bomb(5 * 1024 * 1024)])
    assert small.data == b"0" * 1024 * 1024 and large.metadata["encoding"] == UNREADABLE


async def test_the_payloads_of_a_message_share_one_limit():
    """Many that each fit are no way around it; what comes after them and fits is still read."""
    for context, size in ((None, 30 * 1024 * 1024), (WorkflowSerializationContext("default", "s"), 3 * 1024 * 1024)):
        mine = codec().with_context(context) if context else codec()
        first, second, small = await mine.decode([bomb(size), bomb(size + size // 5), bomb(1000)])
        assert len(first.data) == size and second.metadata["encoding"] == UNREADABLE and small.data == b"0" * 1000


def test_a_key_is_never_shown():
    """Not in what a log may print."""
    assert base64.b64encode(NEW.secret).decode() not in repr(KeyRing([NEW])) and str(NEW.secret) not in repr(NEW)
