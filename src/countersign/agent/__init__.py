"""`strands.agent` by our name."""

from countersign.agent_core.agent import Agent
from countersign.agent_core.conversation_managers import (
    ConversationManager,
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from countersign.agent_core.result import AgentResult

__all__ = [
    "Agent",
    "AgentResult",
    "ConversationManager",
    "NullConversationManager",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
]
