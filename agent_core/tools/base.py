"""What a tool is."""

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.tools.schema import ToolSpec

if TYPE_CHECKING:
    from countersign.agent_core.tools.context import ToolContext


class Tool(ABC):
    """Something that a model may ask to run.

    Attributes:
        idempotent: True if running a call twice does no harm.
        timeout: The longest that one call may take on a worker; an hour if None.
        queue: Task queue of the workers that run it, if not the agent's own; without meaning in-process.
        queue_timeout: How long a call may wait for a worker of `queue` before a person is asked; 10 minutes
            if None.
    """

    idempotent: bool = False
    timeout: timedelta | None = None
    queue: str | None = None
    queue_timeout: timedelta | None = None

    @property
    @abstractmethod
    def tool_name(self) -> str:
        """The name that the model uses."""

    @property
    @abstractmethod
    def tool_spec(self) -> ToolSpec:
        """What the model is told."""

    @property
    @abstractmethod
    def is_async(self) -> bool:
        """True if `invoke` returns at once, an awaitable or an async generator; else it belongs in a thread."""

    @abstractmethod
    def canonical_input(self, raw: Any) -> JsonObject:
        """The input as it will run: validated, defaults filled in, as plain JSON.

        Raises:
            ToolInputError: If the input does not fit.
        """

    def adopt(self, built: "Tool") -> None:  # noqa: B027 (most tools have nothing to take over)
        """Take over what the same tool, made elsewhere in this process, has built of its schema; nothing by default."""

    @abstractmethod
    def invoke(self, canonical: JsonObject, context: "ToolContext") -> Any:
        """Run the tool, or return what does once it is awaited or drained. Raises what the tool's body raises."""
