"""A payload that an activity has encoded by hand can be handed on: it is never encoded or stored twice."""

import base64
import os
import uuid

import pytest
from temporalio.client import Client
from temporalio.worker import Worker
from tests.payloads.passing import Child, Parent, make, measure

from countersign.agent_client.payloads import PayloadSettings, data_converter


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_a_value_encoded_by_hand_reaches_a_child_and_its_activity(temporal_server, tmp_path, encrypted):
    """Small and inline, or large and stored once: child and activity get the value itself."""
    keys = tmp_path / "keys"
    keys.write_text(f"k1 {base64.b64encode(os.urandom(32)).decode()}")
    settings = PayloadSettings(storage=f"file://{tmp_path}/store", encryption_keys=keys if encrypted else None)
    client = await Client.connect(temporal_server, data_converter=data_converter(settings, worker=True))
    queue = f"q-{uuid.uuid4().hex[:8]}"
    async with Worker(client, task_queue=queue, workflows=[Parent, Child], activities=[make, measure]):
        for size, stored in ((100, 0), (40_000, 1)):
            run = client.execute_workflow(Parent.run, size, id=f"p-{uuid.uuid4().hex[:8]}", task_queue=queue)
            assert await run == [size, size]
            assert len([path for path in (tmp_path / "store").rglob("*") if path.is_file()]) == stored
