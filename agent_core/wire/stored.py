"""Parts of a conversation that are in external storage."""

from pydantic import Field

from countersign.agent_core.messages import Message
from countersign.agent_core.wire.base import Wire


class StoredSegment(Wire):
    """Messages of a conversation that are in external storage.

    `reference` is the payload that stands for them (a `temporal.api.common.v1.Payload`, serialized, in base64); if
    they became small by compression, they are in it themselves. Whoever has the storage's driver and the codec
    decodes it to the list of messages.
    """

    messages: int = Field(ge=1, description="how many")
    bytes: int = Field(default=0, description="their size as JSON")
    reference: str


Piece = StoredSegment | list[Message]
"""A part of a conversation, as it travels."""


class StoredRange(Wire):
    """Messages of a call's conversation that its activity has put into storage."""

    start: int = Field(ge=0, description="place of the first one")
    segment: StoredSegment
