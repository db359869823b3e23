"""The events of the agent loop. Only the fields that an event's docstring calls writable can be set."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from countersign.agent_core.interrupts import UNSET
from countersign.agent_core.json_values import JsonObject, check_json, digest
from countersign.agent_core.messages import ContentBlock, Message, Messages, ToolResult, ToolUse

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent
    from countersign.agent_core.result import AgentResult
    from countersign.agent_core.tools.base import Tool


class InterruptPort(Protocol):
    """Where an event's `interrupt` is answered or recorded."""

    def ask(self, name: str, reason: Any, response: Any, answers: JsonObject | None) -> Any:
        """Return the answer, or record the question and raise `InterruptException`."""
        ...

    async def once(self, key: str, call: str, find_out: Callable[[], Awaitable[Any]]) -> Any:
        """What was found out about a call, or find it out now."""
        ...


@dataclass
class HookEvent:
    """Base of all events.

    Attributes:
        agent: The agent that runs.
    """

    writable: ClassVar[frozenset[str]] = frozenset()
    reverse: ClassVar[bool] = False

    agent: "Agent"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sealed", True)

    @property
    def should_reverse_callbacks(self) -> bool:
        """True for After events: what was registered last is called first."""
        return self.reverse

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_sealed", False) and name not in self.writable:
            raise AttributeError(f"Property {name} is not writable")
        object.__setattr__(self, name, value)


@dataclass
class InterruptibleEvent(HookEvent):
    """An event whose callbacks may ask a person."""

    def attach(self, port: InterruptPort) -> None:
        """Connect the event to what answers its interrupts."""
        object.__setattr__(self, "_port", port)

    def interrupt(
        self, name: str, reason: Any = None, response: Any = UNSET, *, answers: JsonObject | None = None
    ) -> Any:
        """Ask a person, or return their answer once they gave it.

        Args:
            name: Unique among all interrupts of the callbacks on this event.
            reason: What the person sees; any JSON value.
            response: An answer known beforehand: then nobody is asked. Any JSON value counts, None too; a person's
                refusal that is there already wins.
            answers: What buttons send, for instance {"approve": "y", "deny": "n"}.

        Returns:
            The answer, with its JSON type.

        Raises:
            InterruptException: While there is no answer. It is not an `Exception`: leave it alone.
            TypeError: If the name, the reason or the response is not what it should be.
            ValueError: If another callback of this event uses the same name.
        """
        port: InterruptPort | None = getattr(self, "_port", None)
        if port is None:
            raise RuntimeError("interrupts are not possible here: the event is not part of a running cycle")
        return port.ask(name, reason, response, answers)


@dataclass
class AgentInitializedEvent(HookEvent):
    """The agent is built."""


@dataclass
class BeforeInvocationEvent(HookEvent):
    """An invocation begins: a prompt, or answers to interrupts.

    Writable: `messages` (what the prompt adds to the conversation), `cancel` (True or a text ends
    the invocation before the model is called; an empty text counts too).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"messages", "cancel"})

    invocation_state: dict[str, Any] = field(default_factory=dict)
    messages: Messages | None = None
    cancel: bool | str = False


@dataclass
class AfterInvocationEvent(HookEvent):
    """An invocation ended: with an answer, an interrupt, a limit or an error.

    Writable: `resume` (a prompt, content blocks or messages to go on with at once).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"resume"})
    reverse: ClassVar[bool] = True

    invocation_state: dict[str, Any] = field(default_factory=dict)
    result: "AgentResult | None" = None
    resume: Any = None


@dataclass
class MessageAddedEvent(HookEvent):
    """A message was added to the conversation."""

    message: Message


@dataclass
class BeforeModelCallEvent(HookEvent):
    """The model is about to be called. `projected_input_tokens`, a field of Strands, is None: nobody estimates it.

    Writable: `cancel` (True or a text takes the place of the model's answer and ends the turn).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel"})

    invocation_state: dict[str, Any] = field(default_factory=dict)
    projected_input_tokens: int | None = None
    cancel: bool | str = False


@dataclass
class ModelStopResponse:
    """What the model answered, before it is added to the conversation."""

    message: Message
    stop_reason: str


@dataclass
class AfterModelCallEvent(HookEvent):
    """The model answered or failed.

    Writable: `retry` (True discards the answer or the error and calls the model again).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"retry"})
    reverse: ClassVar[bool] = True
    invocation_state: dict[str, Any] = field(default_factory=dict)
    stop_response: ModelStopResponse | None = None
    exception: BaseException | None = None
    retry: bool = False


@dataclass
class BeforeToolsEvent(InterruptibleEvent):
    """The model asked for tools and none has run yet. Interruptible: one question for the batch.

    Writable: `cancel` (True or a text, also an empty one, gives every call an error result).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel"})

    message: Message
    invocation_state: dict[str, Any] = field(default_factory=dict)
    cancel: bool | str = False


@dataclass
class AfterToolsEvent(HookEvent):
    """The tools of this cycle are done, or as far as they could get.

    `message` carries the results that this cycle produced.
    Writable: `end_turn` (True, a text or content blocks end the turn without another model call).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"end_turn"})
    reverse: ClassVar[bool] = True

    message: Message
    invocation_state: dict[str, Any] = field(default_factory=dict)
    end_turn: bool | str | list[ContentBlock] = False


@dataclass
class BeforeToolCallEvent(InterruptibleEvent):
    """One tool is about to run. Interruptible.

    Writable: `tool_use` (its name, and its input, also in place), `selected_tool`, `cancel_tool`
    (True or a text, also an empty one, gives the call an error result).
    """

    writable: ClassVar[frozenset[str]] = frozenset({"cancel_tool", "selected_tool", "tool_use"})

    selected_tool: "Tool | None"
    tool_use: ToolUse
    invocation_state: dict[str, Any] = field(default_factory=dict)
    cancel_tool: bool | str = False

    async def once(self, key: str, find_out: Callable[[], Awaitable[Any]]) -> Any:
        """What a handler wants to know of this call, found out once while the call stands as it does.

        The callbacks run again when a call is resumed; what was found out stays with the call.

        Args:
            key: Tells what it is about.
            find_out: Called if it is not known yet; returns JSON.
        """
        port: InterruptPort | None = getattr(self, "_port", None)
        return await (find_out() if port is None else port.once(key, self.as_it_stands(), find_out))

    def as_it_stands(self) -> str:
        """A digest of the call as it stands at this moment: its name, its input, and the tool behind it.

        Raises:
            TypeError: If a hook or handler has put something into the input that is not JSON.
        """
        check_json(self.tool_use["input"], "event.tool_use['input']")
        tool = self.selected_tool.tool_name if self.selected_tool is not None else None
        return digest([self.tool_use["name"], self.tool_use["input"], tool])


@dataclass
class AfterToolCallEvent(HookEvent):
    """One call has its result: the tool's, or that of a cancellation.

    Writable: `result`, `retry` (True discards the result and runs the call again; unless the tool
    is idempotent, a person who approved it is asked again). `duration` is how long the tool ran, in
    seconds, as it was measured where it ran; None if it did not.
    """

    writable: ClassVar[frozenset[str]] = frozenset({"result", "retry"})
    reverse: ClassVar[bool] = True

    selected_tool: "Tool | None"
    tool_use: ToolUse
    invocation_state: dict[str, Any]
    result: ToolResult
    exception: BaseException | None = None
    cancel_message: str | None = None
    duration: float | None = None
    retry: bool = False
