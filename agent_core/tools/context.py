"""What a tool's body may see and ask: `ToolContext`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from countersign.agent_core.interrupts import UNSET, InterruptException, is_refusal
from countersign.agent_core.json_values import JsonObject, check_json, digest
from countersign.agent_core.messages import ToolUse
from countersign.agent_core.wire import GivenAnswer, ToolAsk

if TYPE_CHECKING:
    from countersign.agent_core.state import AgentState


@dataclass(frozen=True)
class ToolAgent:
    """The agent as a tool sees it: its name and its state. Writes to `state` come back as data."""

    name: str
    state: "AgentState"


@dataclass
class ToolContext:
    """Passed to tools that are declared with `@tool(context=True)`.

    Attributes:
        tool_use: The call as it runs: id, name and final input.
        agent: Name and state of the agent.
        invocation_state: What the caller passed along with the prompt.
        idempotency_key: The same for every attempt at this call; hand it to the service you call.
        heartbeat: Call it during long work, so that a stop reaches the tool soon.
    """

    tool_use: ToolUse
    agent: ToolAgent
    invocation_state: JsonObject = field(default_factory=dict)
    idempotency_key: str = ""
    heartbeat: Callable[[], None] = lambda: None
    _answers: Mapping[str, GivenAnswer] = field(default_factory=dict, repr=False)
    _reasons: dict[str, str] = field(default_factory=dict, repr=False)
    _asked: list[ToolAsk] = field(default_factory=list, repr=False)

    def interrupt(
        self, name: str, reason: Any = None, response: Any = UNSET, *, answers: JsonObject | None = None
    ) -> Any:
        """Ask a person, or return their answer once they gave it.

        The tool's body runs again from its start when the answer is there, so nothing that has an
        effect should stand before this call.

        Args:
            name: Unique among the interrupts of this tool.
            reason: What the person sees; any JSON value.
            response: An answer known beforehand: then nobody is asked. Any JSON value counts, None too; a person's
                refusal that is there already wins.
            answers: What buttons send, for instance {"approve": "y", "deny": "n"}.

        Returns:
            The answer, with its JSON type.

        Raises:
            InterruptException: While there is no answer. It is not an `Exception`: leave it alone.
            TypeError: If the reason, the response or an answer is not JSON.
            ValueError: If this run of the body has used the name for another reason.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"an interrupt's name must be non-empty text, not {name!r}")
        check_json(reason, "reason")
        check_json(answers, "answers")
        if self._reasons.setdefault(name, digest(reason)) != digest(reason):
            raise ValueError(f"interrupt_name=<{name}> | interrupt name used more than once, for two reasons")
        given = self._answers.get(name)
        no = given is not None and is_refusal(given.response, answers)
        if response is not UNSET:
            check_json(response, "response")
            if not no:
                return response
        # The person answered the reason they saw. If it has changed since, only a refusal still holds.
        if given is not None and (no or given.reason_digest == digest(reason)):
            return given.response
        ask = ToolAsk(name=name, reason=reason, answers=answers)
        self._asked.append(ask)
        raise InterruptException(name, reason)

    @property
    def asked(self) -> ToolAsk | None:
        """The question that the body asked and that has no answer yet; recorded before it was raised."""
        return self._asked[0] if self._asked else None
