"""Blobs in S3, against a server on loopback that speaks it; and what claims of buckets may name."""

import os
import uuid

import boto3
import pytest
from moto.server import ThreadedMotoServer
from temporalio.converter import StorageDriverClaim, StorageDriverStoreContext, StorageDriverWorkflowInfo
from tests.durable.test_waiting import history, questions
from tests.payloads.test_durable_storage import BULKY

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.payloads.buckets import claim_check
from countersign.agent_client.payloads.errors import NotHereError, StorageError
from countersign.agent_client.payloads.references import is_reference
from countersign.agent_client.payloads.settings import Location

VALUE = "x" + "0123456789abcdef" * 2_000
CONTEXT = StorageDriverStoreContext(StorageDriverWorkflowInfo(namespace="n", id="s/cycle-2", type="AgentCycle"))


@pytest.fixture(scope="module")
def endpoint():
    """Address of the server."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint, monkeypatch):
    """A fresh bucket's client and name; everything finds it by the vendor's own variables."""
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    name = f"b-{uuid.uuid4().hex[:8]}"
    client = boto3.client("s3")
    client.create_bucket(Bucket=name)
    return client, name


def keys_in(bucket) -> list[str]:
    client, name = bucket
    return [item["Key"] for item in client.list_objects_v2(Bucket=name).get("Contents", [])]


def converter(storage: str, cache_mb: int = 0):
    """As a worker has it for a cycle; values don't shrink, so that sizes are what they seem."""
    made = data_converter(PayloadSettings(storage=storage, storage_cache_mb=cache_mb))
    object.__setattr__(made, "payload_codec", None)
    return made._with_store_context(CONTEXT)


async def test_a_value_is_stored_once_under_its_session_and_comes_back(bucket):
    """Below the prefix, by namespace and session; another process reads it with the same settings."""
    _, name = bucket
    [first] = await converter(f"s3://{name}/agents").encode([VALUE])
    [second] = await converter(f"s3://{name}/agents").encode([VALUE])
    assert is_reference(first) and first == second
    [key] = keys_in(bucket)
    assert key.startswith("agents/v0/ns/n/wt/AgentSession/wi/s/ri/null/d/sha256/")
    assert await converter(f"s3://{name}/agents").decode([first]) == [VALUE]


async def test_the_name_of_a_blob_is_short_enough_for_every_store(bucket):
    """Whatever the session's id is: its blobs stand together, apart from others', and come back."""
    _, name = bucket
    made = data_converter(PayloadSettings(storage=f"s3://{name}/agents"))
    object.__setattr__(made, "payload_codec", None)
    for end in "abab":
        cycle = f"{chr(0x20000) * 199}{end}/cycle-2"
        target = StorageDriverWorkflowInfo(namespace="n", id=cycle, type="AgentCycle")
        of_session = made._with_store_context(StorageDriverStoreContext(target))
        assert await of_session.decode(await of_session.encode([VALUE])) == [VALUE]
    keys = keys_in(bucket)
    assert len(keys) == 2 and all(len(key) < 500 and "/wi/%F0%A0%80%80" in key for key in keys)


async def test_a_bucket_that_is_no_longer_written_to_is_still_read(bucket):
    """After a move, old values come from where they were."""
    client, name = bucket
    [old] = await converter(f"s3://{name}/old").encode([VALUE])
    client.create_bucket(Bucket=f"{name}-new")
    both = converter(f"s3://{name}-new, s3://{name}/old")
    assert await both.decode([old]) == [VALUE]
    [new] = await both.encode([VALUE])
    assert new != old and await both.decode([new]) == [VALUE]


async def test_a_missing_object_is_named(bucket):
    """Bucket, key and cause; the task is tried again until it is back."""
    client, name = bucket
    [reference] = await converter(f"s3://{name}").encode([VALUE])
    [key] = keys_in(bucket)
    data = client.get_object(Bucket=name, Key=key)["Body"].read()
    client.delete_object(Bucket=name, Key=key)
    with pytest.raises(NotHereError, match=f"{name}/{key} can't be read from s3://{name}/.*NoSuchKey"):
        await converter(f"s3://{name}").decode([reference])
    client.put_object(Bucket=name, Key=key, Body=data + b"?")
    with pytest.raises(StorageError, match="integrity check failed"):
        await converter(f"s3://{name}").decode([reference])
    client.put_object(Bucket=name, Key=key, Body=data)
    assert await converter(f"s3://{name}").decode([reference]) == [VALUE]


async def test_an_unreachable_store_is_named(bucket, monkeypatch):
    """Nothing is lost: storing fails, too, and is tried again."""
    _, name = bucket
    [reference] = await converter(f"s3://{name}").encode([VALUE])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=f"from s3://{name}/"):
        await converter(f"s3://{name}").decode([reference])
    with pytest.raises(StorageError, match=f"in s3://{name}/"):
        await converter(f"s3://{name}").encode([VALUE])


async def test_a_process_without_a_store_says_what_to_set(bucket):
    """The value is somebody's: it waits, by name, and is not refused."""
    _, name = bucket
    [reference] = await converter(f"s3://{name}").encode([VALUE])
    with pytest.raises(StorageError, match=rf"bucket '{name}'.*s3://.*COUNTERSIGN_STORAGE"):
        await data_converter(PayloadSettings(storage="")).decode([reference])


async def test_a_session_lives_on_a_bucket(bucket, lab, monkeypatch):
    """A large prompt and a large result around an approval and a lost worker: the transcript has both, whole."""
    _, name = bucket
    monkeypatch.setenv("COUNTERSIGN_STORAGE", f"s3://{name}/agents")
    lab.package("bulky", agents=BULKY)
    worker, prompt = lab.worker("bulky.agents"), os.urandom(150_000).hex()
    probe = keys_in(bucket)
    session = await (await lab.client(worker)).start("bulky", prompt)
    [question] = await questions(session, 1)
    before = keys_in(bucket)
    assert len(before) > len(probe), "the prompt is in the bucket"
    worker.restart()
    await session.approve(question.id)
    assert (await session.result()).stop_reason == "end_turn"
    asked, _, ran, _ = await history(session)
    assert asked["content"] == [{"text": prompt}]
    assert len(ran["content"][0]["toolResult"]["content"][0]["text"]) == 50_000
    assert len(after := keys_in(bucket)) > len(before), "the result is, too"
    assert all(f"/wi/{session.id}/" in key for key in after if key not in probe), "and goes with its session"


DIGEST = "0" * 64
OURS = {"bucket": "b", "key": f"p/v0/d/sha256/{DIGEST}", "hash_algorithm": "sha256", "hash_value": DIGEST}


@pytest.mark.parametrize(
    "change",
    [{"bucket": "theirs"}, {"key": f"v0/d/sha256/{DIGEST}"}, {"key": f"p/other/{DIGEST}"},
     {"key": "p/v0/d/sha256/" + "1" * 64}, {"hash_value": "x"}, {"hash_algorithm": "md5"}],
    ids="-".join,
)  # fmt: skip
def test_only_our_places_are_ever_read(change):
    """A claim is foreign data: no other bucket, no other prefix, no other object."""
    named = claim_check("key", [Location("s3", "b", "p/")])
    assert named(StorageDriverClaim(OURS)) == f"b/{OURS['key']}"
    assert named(StorageDriverClaim({**OURS, **change})) is None
