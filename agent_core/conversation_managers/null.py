"""Nothing ever goes."""

from typing import TYPE_CHECKING, Any

from countersign.agent_core.conversation_managers.base import ConversationManager

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


class NullConversationManager(ConversationManager):
    """Leaves the conversation alone; one that is too long for the model fails the turn. The default."""

    def apply_management(self, agent: "Agent", **kwargs: Any) -> None:
        """Do nothing."""

    def reduce_context(self, agent: "Agent", e: Exception | None = None, **kwargs: Any) -> None:
        """Raise what the model raised."""
        if e is not None:
            raise e
