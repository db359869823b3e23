"""How values travel: the data converter that workers and clients share, its settings, and what can go wrong with it."""

from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_client.payloads.errors import (
    DecryptionError,
    NotHereError,
    PayloadError,
    PayloadSettingsError,
    StorageError,
)

__all__ = [
    "DecryptionError",
    "NotHereError",
    "PayloadError",
    "PayloadSettings",
    "PayloadSettingsError",
    "StorageError",
    "data_converter",
]
