"""The default: nothing ever goes."""

from typing import TYPE_CHECKING, Any

from countersign.agent_core.conversation_managers.base import ConversationManager
from countersign.agent_core.errors import AgentDefinitionError

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


def checked_manager(given: ConversationManager | None) -> ConversationManager:
    """What an agent was given, if it is a conversation manager; one that does nothing if it was given none.

    Raises:
        AgentDefinitionError: If it is something else.
    """
    if given is None:
        return NullConversationManager()
    if not isinstance(given, ConversationManager):
        raise AgentDefinitionError(
            f"conversation_manager must be one of countersign.agent.conversation_manager, or derived from its "
            f"ConversationManager, not {given!r}"
        )
    if not hasattr(given, "report"):
        raise AgentDefinitionError(f"{type(given).__name__}.__init__ does not call super().__init__(); let it do so")
    return given
