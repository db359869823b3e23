"""The data converter, put together from settings."""

from temporalio.converter import (
    DataConverter,
    DefaultFailureConverter,
    DefaultFailureConverterWithEncodedAttributes,
)

from countersign.agent_client.payloads.codec import OurCodec
from countersign.agent_client.payloads.encryption import check_installed
from countersign.agent_client.payloads.keys import KeyRing, load_keys
from countersign.agent_client.payloads.references import TolerantDataConverter
from countersign.agent_client.payloads.settings import PayloadSettings, payload_settings
from countersign.agent_client.payloads.storing import external_storage
from countersign.agent_client.payloads.unreadable import OurPayloadConverter, TolerantPayloadConverter


def data_converter(settings: PayloadSettings | None = None, *, worker: bool = False) -> DataConverter:
    """The data converter that workers, clients and the command share.

    Args:
        settings: Stores and keys; from the environment if None.
        worker: Whether a worker uses it: what can't be decoded then reaches the workflows' own code, which
            refuses it, instead of failing their tasks. To a client it is an error.

    Raises:
        PayloadSettingsError: If a setting, the key file or a store can't be used.
    """
    chosen = payload_settings() if settings is None else settings
    keys = KeyRing()
    if chosen.encryption_keys is not None:
        check_installed()
        keys = load_keys(chosen.encryption_keys)
    return TolerantDataConverter(
        payload_converter_class=TolerantPayloadConverter if worker else OurPayloadConverter,
        payload_codec=OurCodec(keys, compress=bool(chosen.locations or keys.keys), worker=worker),
        # An error's words may be a tool's input: they are to be hidden, too.
        failure_converter_class=(
            DefaultFailureConverterWithEncodedAttributes if keys.keys else DefaultFailureConverter
        ),
        external_storage=external_storage(chosen),
    )
