"""References to messages in external storage, as Temporal's data converter knows them."""

import base64

from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from countersign.agent_core.wire import StoredSegment


def payload_of(segment: StoredSegment) -> RawValue:
    """The reference as an argument of a child: Temporal reads the messages from storage where the child runs."""
    return RawValue(Payload.FromString(base64.b64decode(segment.reference)))
