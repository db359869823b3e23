"""Blobs in Google Cloud Storage, against an emulator on loopback."""

import pytest
from gcp_storage_emulator.server import create_server
from tests.payloads.test_buckets import VALUE, converter

from countersign.agent_client.dev_server import free_port
from countersign.agent_client.payloads.errors import StorageError


async def test_a_value_is_stored_under_its_session_and_comes_back(monkeypatch):
    """Once; and a lost one is named."""
    from google.cloud import storage

    port = free_port()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "none")
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket="b")
    server.start()
    try:
        [first], [second] = [await converter("gs://b/agents").encode([VALUE]) for _ in range(2)]
        assert first == second
        [blob] = storage.Client().bucket("b").list_blobs()
        assert blob.name.startswith("agents/v0/ns/n/wt/AgentSession/wi/s/ri/null/d/sha256/")
        assert await converter("gs://b/agents").decode([first]) == [VALUE]
        blob.delete()
        with pytest.raises(StorageError, match=f"blob b/{blob.name} can't be read from gs://b/agents/"):
            await converter("gs://b/agents").decode([first])
    finally:
        server.stop()
