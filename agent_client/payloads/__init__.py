"""What a value goes through between our code and Temporal: converted, compressed, encrypted, stored elsewhere.

One data converter for workers, clients and the command, made from settings. Nothing of it runs in a workflow
but the conversion. Foreign data is never a reason to fail: what can't be read and can't be told to be ours
becomes a marker that handlers refuse by name. What is ours and can't be read now fails, and is tried again.
"""

from countersign.agent_client.payloads.making import data_converter
from countersign.agent_client.payloads.settings import PayloadSettings, payload_settings
from countersign.agent_client.payloads.storing import check_store

__all__ = ["PayloadSettings", "check_store", "data_converter", "payload_settings"]
