"""`strands.types.content` by our name."""

from countersign.agent_core.messages import ContentBlock, Message, Messages

__all__ = ["ContentBlock", "Message", "Messages"]
