"""`strands.types.agent` by our name."""

from typing import Any

from countersign.agent_core.messages import ContentBlock
from countersign.agent_core.wire import Limits

AgentInput = str | list[ContentBlock] | list[dict[str, Any]] | None

__all__ = ["AgentInput", "Limits"]
