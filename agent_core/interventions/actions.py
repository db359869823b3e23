"""The five actions that a handler may return."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from countersign.agent_core.interrupts import UNSET
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.plain_answers import approves


@dataclass(frozen=True)
class Edit:
    """A verdict on an answer: it approves, but of another input.

    Attributes:
        input: What the approver puts in place of the call's input; held against the tool's schema.
    """

    input: Any


Evaluate = Callable[[Any], bool | Edit | Awaitable[bool | Edit]]


@dataclass(frozen=True)
class Proceed:
    """Go on unchanged. `reason` is for logs only."""

    reason: str | None = None
    type: str = field(default="proceed", init=False)


@dataclass(frozen=True)
class Deny:
    """Block. The reason reaches the model; later handlers are not asked."""

    reason: str = ""
    type: str = field(default="deny", init=False)


@dataclass(frozen=True)
class Guide:
    """Send the model back with feedback. All handlers' feedback is combined."""

    feedback: str = ""
    reason: str | None = None
    type: str = field(default="guide", init=False)


@dataclass(frozen=True)
class Confirm:
    """Ask a person before the tool runs (before_tool_call only).

    Attributes:
        prompt: What the person sees.
        response: An answer known beforehand; then nobody is asked. None counts as an answer; a person's refusal that
            is there already wins.
        evaluate: Whether an answer approves; sync or async. True, "y" and "yes" do if None. An `Edit`
            approves of another input.
        answers: What buttons send.
        ask: Asks inline, once for the call as it then stands, when no other handler objects; None denies.
    """

    prompt: str = ""
    reason: str | None = None
    response: Any = UNSET
    evaluate: Evaluate | None = approves
    answers: JsonObject | None = None
    ask: Callable[[], Awaitable[Any]] | None = None
    type: str = field(default="confirm", init=False)


@dataclass(frozen=True)
class Transform:
    """Change the event in place; later handlers see the change."""

    apply: Callable[[Any], Any] = lambda event: None
    reason: str | None = None
    type: str = field(default="transform", init=False)


InterventionAction = Proceed | Deny | Guide | Confirm | Transform

ACTIONS = (Proceed, Deny, Guide, Confirm, Transform)
