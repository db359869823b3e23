"""`strands.types.agent` by our name."""

from typing import Any

from countersign.agent_core.limits import Limits
from countersign.agent_core.messages import ContentBlock

AgentInput = str | list[ContentBlock] | list[dict[str, Any]] | None

__all__ = ["AgentInput", "Limits"]
