"""The base class of conversation managers."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.hooks.registry import HookRegistry
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.steps import StepInfo

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


class ConversationManager(ABC):
    """Override `apply_management` and `reduce_context`; sync or async.

    Both work on `agent.messages`: change the list in place, or assign another one. What they leave must be
    valid: each call with its results in the next message. Otherwise the conversation is put back as it was, and
    the turn fails with `ConversationManagerError`. A manager's attributes are carried from cycle to cycle, like
    a hook's, and like a hook it does its I/O in steps.

    Args:
        proactive_compression: Accepted for Strands' sake; only None and False, as the core does not know how
            much a model takes.

    Attributes:
        removed_message_count: How many messages have gone so far.
        report: What the audit line about this call should say beside what went and what is left; JSON. `usage`
            and `latency_ms` in it, of models that were called, are added to the turn's. Emptied after each call.

    Raises:
        AgentDefinitionError: If it is asked for proactive compression.
    """

    def __init__(self, *, proactive_compression: Any = None) -> None:
        if proactive_compression:
            raise AgentDefinitionError(
                f"proactive_compression={proactive_compression!r}: the size of a model's context window is not known "
                "here; leave it out, and pass per_turn to a sliding window to cut before model calls"
            )
        self.removed_message_count = 0
        self.report: JsonObject = {}

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:  # noqa: B027 (most need none)
        """Add callbacks of the manager's own; they are called before those of the agent's hooks."""

    def steps(self, agent: "Agent") -> Sequence[StepInfo]:
        """What this manager does that needs I/O; durably a worker finds each under its name.

        Args:
            agent: The agent that the manager belongs to.
        """
        return ()

    def due_before_model_call(self) -> bool:
        """Whether `apply_management` is wanted now, before a model call; asked once for each."""
        return False

    @abstractmethod
    def apply_management(self, agent: "Agent", **kwargs: Any) -> Awaitable[None] | None:
        """Bring the conversation to the size that it should have. Called when a turn has ended.

        Args:
            agent: The agent.
            **kwargs: For later additions.
        """

    @abstractmethod
    def reduce_context(self, agent: "Agent", e: Exception | None = None, **kwargs: Any) -> Awaitable[None] | None:
        """Make the conversation smaller. Called when the model has refused it as too long, and then it is called again.

        Args:
            agent: The agent.
            e: What the model raised; None means: as far as it is easily done.
            **kwargs: For later additions.

        Raises:
            ContextWindowOverflowException: If it can't be made smaller.
        """
