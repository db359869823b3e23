"""Conversation managers: what goes when a conversation gets longer than its model takes.

They run inside a cycle, deterministically like a hook. `cycle/managing.py` calls them and holds them to
the rules: a valid history, nothing touched while a question is open, a line in the audit trail.
"""

from countersign.agent_core.conversation_managers.base import ConversationManager
from countersign.agent_core.conversation_managers.null import NullConversationManager, checked_manager
from countersign.agent_core.conversation_managers.sliding_window import SlidingWindowConversationManager
from countersign.agent_core.conversation_managers.summarizing import SummarizingConversationManager

__all__ = [
    "ConversationManager",
    "NullConversationManager",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
    "checked_manager",
]
