"""What calls itself a storage reference and can't be told to be ours: no exception before our code runs."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import DataConverter, ExternalStorage, WorkflowSerializationContext
from tests.payloads.test_undecodable import UNDECODABLE

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.payloads.references import TolerantDataConverter, TolerantStorage
from countersign.agent_client.payloads.unreadable import UNREADABLE


@pytest.mark.parametrize("name", UNDECODABLE)
async def test_a_worker_gets_it_raw_and_a_client_an_error(name, tmp_path):
    """Alone, and beside a good value, which is decoded."""
    settings, good = (
        PayloadSettings(storage=f"file://{tmp_path}"),
        Payload(metadata={"encoding": b"json/plain"}, data=b"1"),
    )
    [alone] = await data_converter(settings, worker=True).decode([UNDECODABLE[name]])
    first, second = await data_converter(settings, worker=True).decode([UNDECODABLE[name], good])
    assert isinstance(alone, RawValue) and isinstance(first, RawValue) and second == 1
    with pytest.raises((ValueError, KeyError, RuntimeError)):
        await data_converter(settings).decode([UNDECODABLE[name]])


async def test_a_blob_named_thousands_of_times_is_not_copied_as_often(tmp_path):
    """A message of 2 MB does not become 4 GB: what is repeated too often is a marker, the first one is read."""
    session = WorkflowSerializationContext("default", "s")
    settings = PayloadSettings(storage=f"file://{tmp_path}")
    for worker in (True, False):
        converter = data_converter(settings, worker=worker).with_context(session)
        [reference] = await converter.encode(["x" * 490_000])
        decoded = await converter.decode([reference] * 300, [RawValue] * 300)
        sizes = [len(raw.payload.data) for raw in decoded]
        assert sizes[0] > 490_000 and sizes.count(sizes[0]) > 2 and sum(sizes) < 20_000_000
        assert decoded[-1].payload.metadata["encoding"] == UNREADABLE


async def test_heavy_values_of_no_known_type_come_raw(tmp_path):
    """JSON takes fifty times its size: what a stranger starts a workflow with waits until he is looked at."""
    converter = data_converter(PayloadSettings(storage=f"file://{tmp_path}"), worker=True)
    heavy, light = ["x" * 5_000_000], ["x"]
    assert await converter.decode(await converter.encode([light]), None) == [light]
    [raw, beside] = await converter.decode(await converter.encode([heavy, light]), None)
    assert isinstance(raw, RawValue) and isinstance(beside, RawValue)
    assert await converter.decode(await converter.encode([heavy]), [list]) == [heavy]


@pytest.mark.parametrize(
    ("ours", "theirs", "method"),
    [
        (TolerantStorage, ExternalStorage, "_get_driver_by_name"),
        (TolerantStorage, ExternalStorage, "_decode_reference"),
        (TolerantDataConverter, DataConverter, "_decode_reference_payload_sequence"),
        (TolerantDataConverter, DataConverter, "_external_retrieve_payload_sequence"),
    ],
)
def test_what_we_override_is_still_what_the_sdk_has(ours, theirs, method):
    """They are private: a new version of the SDK without them must not pass unnoticed."""
    assert method in vars(ours) and method in vars(theirs)
