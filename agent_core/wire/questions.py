"""Questions to people, and what they answer."""

from typing import Any, Literal

from pydantic import Field

from countersign.agent_core.json_values import JsonObject, JsonValue
from countersign.agent_core.wire.base import Wire


class Answer(Wire):
    """What a person sent for one question, and how it was taken."""

    response: JsonValue = None
    responder: JsonObject | None = None
    comment: str | None = None
    at: str = ""
    said_at: str | None = Field(default=None, description="when it was said, if the sender claims that it was earlier")
    channel: str = ""

    @property
    def counts_from(self) -> str:
        """From when on an approval lapses: a claim can only make that sooner."""
        return self.said_at or self.at


class ShownCall(Wire):
    """A call as the person sees it: exactly what will run."""

    index: int = Field(description="place of the call in the model's message, from 0")
    tool_use_id: str
    tool: str
    input: JsonValue
    input_schema: JsonObject | None = None


QuestionScope = Literal["batch", "call", "tool", "core"]
QuestionStatus = Literal["open", "answered", "expired", "withdrawn", "settled"]


class Question(Wire):
    """An interrupt as people and programs outside see it.

    `scope` says who asks: a BeforeToolsEvent hook (batch), a BeforeToolCallEvent hook or handler
    (call), a tool's body (tool) or Countersign itself (core). `digest` binds an approval to name,
    reason, tools and inputs. `verdict` is what the asker's `evaluate` made of the answer.
    """

    id: str
    name: str
    reason: JsonValue = None
    calls: list[ShownCall] = Field(default_factory=list)
    digest: str
    answers: JsonObject = Field(default_factory=lambda: {"approve": "y", "deny": "n"})
    asked_at: str = ""
    deadline: str | None = None
    policy: JsonObject | None = None
    votes: list[JsonObject] = Field(default_factory=list)
    status: QuestionStatus = "open"
    scope: QuestionScope = "call"
    origin_cycle: int = 0
    index: int | None = Field(default=None, description="the call's place in the message; None for a batch")
    generation: int = 0
    answer: Answer | None = None
    verdict: bool | None = None
    edited: JsonObject | None = Field(default=None, description="the input that the answer put in its place")
    edited_tool: str | None = Field(default=None, description="the tool for which it did; that of the call if unset")
    fault: str | None = Field(
        default=None,
        description="why it is asked again, if the answer before it can't be used or does not hold any more",
    )


class InlineAnswer(Wire):
    """What a person said inline about a call: it holds for the call as it stood then."""

    name: str = Field(description="of the handler that asked")
    call: str = Field(description="digest of the call as it stood")
    response: Any = None
    at: str
    verdict: JsonObject | None = Field(
        default=None, description='`{"approved": ...}`, with "edit" if another input was approved; null until judged'
    )

    @property
    def approved(self) -> bool:
        """Whether it approves."""
        return self.verdict is not None and bool(self.verdict["approved"])
