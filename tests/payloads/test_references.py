"""What calls itself a storage reference and can't be told to be ours: no exception before our code runs."""

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import DataConverter, ExternalStorage
from tests.payloads.test_undecodable import UNDECODABLE

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.payloads.references import TolerantDataConverter, TolerantStorage


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
