"""The base class of intervention handlers."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_core.hooks.events import (
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from countersign.agent_core.interventions.actions import Confirm, Deny, Guide, Proceed, Transform
from countersign.agent_core.steps import StepInfo

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

OnError = Literal["throw", "proceed", "deny"]
"""What an error in a handler means: fail the invocation, go on (fail open), or block (fail closed)."""


class InterventionHandler(ABC):
    """Override the lifecycle methods that matter; sync or async. The others proceed.

    A handler's attributes are carried from cycle to cycle, like in one long-lived process.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Unique among the agent's handlers; also the name of its questions."""

    @property
    def on_error(self) -> OnError:
        """What an error in this handler means."""
        return "throw"

    def steps(self, agent: "Agent") -> Sequence[StepInfo]:
        """What this handler does that needs I/O; durably a worker finds each under its name.

        Args:
            agent: The agent that the handler belongs to.
        """
        return ()

    def check_agent(self, agent: "Agent") -> None:  # noqa: B027 (most handlers have nothing to refuse)
        """Refuse what makes no sense for an agent; called when the agent is made, with its tools.

        Raises:
            AgentDefinitionError: Naming what makes none.
        """

    def check_durable(self) -> None:  # noqa: B027 (most handlers have nothing to refuse)
        """Refuse what can't work on a worker; called when a worker loads the agent.

        Raises:
            AgentDefinitionError: Naming what can't work, and the way out.
        """

    def before_invocation(
        self, event: BeforeInvocationEvent, **kwargs: Any
    ) -> Proceed | Deny | Guide | Transform | Awaitable[Proceed | Deny | Guide | Transform]:
        """Before the agent loop starts."""
        return Proceed()

    def before_tool_call(
        self, event: BeforeToolCallEvent, **kwargs: Any
    ) -> Proceed | Deny | Guide | Confirm | Transform | Awaitable[Proceed | Deny | Guide | Confirm | Transform]:
        """Before each tool runs."""
        return Proceed()

    def after_tool_call(
        self, event: AfterToolCallEvent, **kwargs: Any
    ) -> Proceed | Transform | Awaitable[Proceed | Transform]:
        """After each tool ran."""
        return Proceed()

    def before_model_call(
        self, event: BeforeModelCallEvent, **kwargs: Any
    ) -> Proceed | Deny | Guide | Transform | Awaitable[Proceed | Deny | Guide | Transform]:
        """Before each model call."""
        return Proceed()

    def after_model_call(
        self, event: AfterModelCallEvent, **kwargs: Any
    ) -> Proceed | Guide | Transform | Awaitable[Proceed | Guide | Transform]:
        """After each model response."""
        return Proceed()
