"""A summary takes the place of the oldest messages."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_core.conversation_managers.base import ConversationManager
from countersign.agent_core.conversation_managers.cutting import is_summary, oldest_part, stands_for, summary_message
from countersign.agent_core.conversation_managers.sliding_window import checked_pin, shorten_results
from countersign.agent_core.conversation_managers.summary import PIECE_CHARS, Summariser, as_text
from countersign.agent_core.errors import (
    AgentDefinitionError,
    ContextWindowOverflowException,
    ConversationManagerError,
    PayloadTooLargeError,
    PolicyViolationError,
)
from countersign.agent_core.json_values import JsonObject, json_size
from countersign.agent_core.messages import Message
from countersign.agent_core.model_making import ModelSource, is_source
from countersign.agent_core.steps import StepInfo

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

SUMMARY_STEP = "countersign:conversation:summary"
SUMMARY_TIMEOUT = timedelta(minutes=5)

_HEADING = "[Summary of {count} earlier messages, which are gone; written by a model]"
_LOST = "[{count} earlier messages are gone, and there is no summary of them]"


class SummarizingConversationManager(ConversationManager):
    """When the model refuses the conversation as too long, a model sums up its oldest part.

    The prompt of the running turn stays word for word. If there is nothing left to sum up, long tool results are
    shortened. Durably the summary is a step, recorded once; its tokens count for the turn.

    Args:
        summary_ratio: How much of the conversation is summed up at a time; taken as 0.1 to 0.8.
        preserve_recent_messages: How many of the latest messages always stay.
        summarization_agent: Its model and its system prompt write the summary. It can have no tools.
        summarization_system_prompt: Rules for the summary in place of the built-in ones.
        model: What writes the summary; the agent's own model if None.
        pin_first: How many messages at the start always stay.
        on_error: What it means if there is no summary: "throw" fails the turn and leaves the conversation as it
            was, "cut" lets the oldest part go, with a note in its place.
        proactive_compression: See `ConversationManager`.

    Raises:
        AgentDefinitionError: For an argument that can't be used.
    """

    def __init__(
        self,
        summary_ratio: float = 0.3,
        preserve_recent_messages: int = 10,
        summarization_agent: "Agent | None" = None,
        summarization_system_prompt: str | None = None,
        *,
        model: ModelSource | None = None,
        pin_first: int | None = None,
        on_error: Literal["throw", "cut"] = "throw",
        proactive_compression: Any = None,
    ) -> None:
        super().__init__(proactive_compression=proactive_compression)
        if not isinstance(preserve_recent_messages, int) or preserve_recent_messages < 0:
            raise AgentDefinitionError(
                f"preserve_recent_messages must be a number of messages, 0 or more, not {preserve_recent_messages!r}"
            )
        if on_error not in ("throw", "cut"):
            raise AgentDefinitionError(f"on_error must be 'throw' or 'cut', not {on_error!r}")
        self.summary_ratio = max(0.1, min(0.8, summary_ratio))
        self.preserve_recent_messages = preserve_recent_messages
        self.on_error = on_error
        self.pin_first = checked_pin(pin_first)
        self.summarization_agent = summarization_agent
        self.summarization_system_prompt = summarization_system_prompt
        self._summariser = _summariser(summarization_agent, summarization_system_prompt, model)

    def steps(self, agent: "Agent") -> Sequence[StepInfo]:
        """See `ConversationManager.steps`."""
        return [self._step(agent)]

    def apply_management(self, agent: "Agent", **kwargs: Any) -> None:
        """Do nothing: a summary is written when the model needs it."""

    async def reduce_context(self, agent: "Agent", e: Exception | None = None, **kwargs: Any) -> None:
        """Sum up the oldest part.

        Args:
            agent: The agent.
            e: What the model raised; None only tries, and raises nothing.
            **kwargs: For later additions.

        Raises:
            ConversationManagerError: If there is no summary; nothing has changed then.
            ContextWindowOverflowException: If there is nothing that could be summed up or shortened.
        """
        if await self._sum_up(agent, e) or e is None or shorten_results(self, agent):
            return
        raise ContextWindowOverflowException(
            f"the conversation is too long for the model ({e}), and nothing is left to sum up: it has "
            f"{len(agent.messages)} messages and preserve_recent_messages is {self.preserve_recent_messages}"
        ) from e

    async def _sum_up(self, agent: "Agent", e: Exception | None) -> bool:
        """True if the conversation has become smaller."""
        messages = list(agent.messages)
        start, places = oldest_part(messages, self.summary_ratio, self.preserve_recent_messages, self.pin_first)
        part = [messages[place] for place in places]
        if not part:
            return False
        try:
            instead = [await self._summary(agent, part)]
        except PolicyViolationError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if e is None:
                return False
            if self.on_error == "throw":
                raise ConversationManagerError(
                    f"the conversation is too long for the model, and there is no summary of its oldest {len(part)} "
                    f"messages ({why}). It is as it was: prompt again once the model for summaries works, or pass "
                    "SummarizingConversationManager(on_error='cut')"
                ) from error
            self.report["summary_failed"] = why
            instead = [_message(_LOST, part)]
        if json_size(instead) >= json_size(part):
            return False  # a summary that is longer than what it sums up
        gone = set(places)
        agent.messages[:] = [
            *messages[:start],
            *instead,
            *(message for place, message in enumerate(messages) if place >= start and place not in gone),
        ]
        self.removed_message_count += sum(not is_summary(message) for message in part)
        self.report |= {"removed": len(part), "summarised": "summary_failed" not in self.report}
        return True

    async def _summary(self, agent: "Agent", part: Sequence[Message]) -> Message:
        *longer, shortest = PIECE_CHARS
        for chars in longer:
            try:
                return self._message(part, await self._step(agent).run(as_text(part, chars)))
            except (ContextWindowOverflowException, PayloadTooLargeError):
                continue  # too long for the summariser too
        return self._message(part, await self._step(agent).run(as_text(part, shortest)))

    def _message(self, part: Sequence[Message], found: JsonObject) -> Message:
        self.report |= {"usage": found["usage"], "latency_ms": found["latency_ms"]}
        return _message(_HEADING, part, f"\n{found['text']}")

    def _step(self, agent: "Agent") -> StepInfo:
        async def summary(text: str) -> Any:
            return await self._summariser.summary(text, agent.model)

        return StepInfo(SUMMARY_STEP, summary, SUMMARY_TIMEOUT)


def _message(heading: str, part: Sequence[Message], text: str = "") -> Message:
    """What stands in the conversation instead of a part of it."""
    count = sum(stands_for(message) for message in part)
    return summary_message(heading.format(count=count) + text, count)


def _summariser(agent: "Agent | None", rules: str | None, model: ModelSource | None) -> Summariser:
    if model is not None and not is_source(model):
        raise AgentDefinitionError(f"model must be a model, a name like 'openai:gpt-5' or a function, not {model!r}")
    if agent is None:
        return Summariser(model, rules)
    if rules is not None or model is not None:
        raise AgentDefinitionError("summarization_agent has a system prompt and a model of its own; pass either or")
    if agent.tool_names:
        raise AgentDefinitionError(
            f"summarization_agent has tools ({', '.join(agent.tool_names)}); a summary is one model call without tools"
        )
    return Summariser(agent.model, agent.system_prompt)
