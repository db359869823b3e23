"""The latest messages stay."""

from typing import TYPE_CHECKING, Any

from countersign.agent_core.conversation_managers.base import ConversationManager
from countersign.agent_core.conversation_managers.cutting import latest
from countersign.agent_core.conversation_managers.shortening import shorten_older_half
from countersign.agent_core.errors import AgentDefinitionError, ContextWindowOverflowException

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


class SlidingWindowConversationManager(ConversationManager):
    """Keeps the latest messages and cuts the others, whole exchanges at a time.

    The running turn keeps its prompt and its last exchange, so that a very small window may be exceeded. If the
    model refuses the conversation as too long: it is cut to the window; then long tool results are shortened,
    those of the older half first; then the oldest quarter goes; until it fits.

    Args:
        window_size: Messages to keep; 0 forgets each turn when it has ended.
        should_truncate_results: Whether long tool results are shortened (200 characters at either end stay).
        per_turn: Cut before model calls too: True before each, a number before each n-th.
        pin_first: How many messages at the start always stay; they count for the window.
        proactive_compression: See `ConversationManager`.

    Raises:
        AgentDefinitionError: For a number that can't be used.
    """

    def __init__(
        self,
        window_size: int = 40,
        should_truncate_results: bool = True,
        *,
        per_turn: bool | int = False,
        pin_first: int | None = None,
        proactive_compression: Any = None,
    ) -> None:
        super().__init__(proactive_compression=proactive_compression)
        if isinstance(window_size, bool) or not isinstance(window_size, int) or window_size < 0:
            raise AgentDefinitionError(f"window_size must be a number of messages, 0 or more, not {window_size!r}")
        if not isinstance(per_turn, bool) and (not isinstance(per_turn, int) or per_turn < 1):
            raise AgentDefinitionError(f"per_turn must be True, False or a number from 1 on, not {per_turn!r}")
        self.window_size = window_size
        self.should_truncate_results = should_truncate_results
        self.per_turn = per_turn
        self.pin_first = checked_pin(pin_first)
        self._model_call_count = 0

    def due_before_model_call(self) -> bool:
        """See `ConversationManager.due_before_model_call`."""
        if self.per_turn is False:
            return False
        self._model_call_count += 1
        return self.per_turn is True or self._model_call_count % self.per_turn == 0

    def apply_management(self, agent: "Agent", **kwargs: Any) -> None:
        """Cut the conversation to the window."""
        self._cut(agent, self.window_size)

    def reduce_context(self, agent: "Agent", e: Exception | None = None, **kwargs: Any) -> None:
        """Make the conversation smaller by one step; see the class.

        Args:
            agent: The agent.
            e: What the model raised; None only cuts messages, and raises nothing.
            **kwargs: For later additions.

        Raises:
            ContextWindowOverflowException: If nothing may go any more.
        """
        if self._cut(agent, self.window_size):
            return
        if e is not None and self.should_truncate_results and shorten_results(self, agent):
            return
        count = len(agent.messages)
        if not self._cut(agent, count - max(2, count // 4)) and e is not None:
            raise ContextWindowOverflowException(
                f"the last exchange alone is too long for the model ({e}); {count} messages are left, and what is in "
                "them must stay. Let tools return less, or use a model that takes more"
            ) from e

    def _cut(self, agent: "Agent", most: int) -> bool:
        """Keep at most so many messages; True if some went."""
        before = len(agent.messages)
        if before <= most:
            return False
        kept = latest(agent.messages, max(0, most), self.pin_first)
        if len(kept) == before:
            return False
        agent.messages[:] = kept
        self.removed_message_count += before - len(kept)
        return True


def shorten_results(manager: ConversationManager, agent: "Agent") -> bool:
    """Shorten the long results of the conversation's older half; True if there were any."""
    messages, count = shorten_older_half(agent.messages)
    if count:
        agent.messages[:] = messages
        manager.report["shortened_results"] = count
    return count > 0


def checked_pin(pin_first: int | None) -> int:
    """A number of pinned messages.

    Raises:
        AgentDefinitionError: If it is none.
    """
    if pin_first is not None and (isinstance(pin_first, bool) or not isinstance(pin_first, int) or pin_first < 0):
        raise AgentDefinitionError(f"pin_first must be a number of messages, 0 or more, not {pin_first!r}")
    return pin_first or 0
