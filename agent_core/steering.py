"""Steering: guidance at the moment it matters, before a tool runs or after the model has answered.

`SteeringHandler` is for rules in code, `LLMSteeringHandler` for rules in words, which a model judges by.
"""

import json
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from countersign.agent_core.effects import spend
from countersign.agent_core.errors import AgentDefinitionError, ModelError, PolicyViolationError
from countersign.agent_core.hooks.events import AfterModelCallEvent, BeforeInvocationEvent, BeforeToolCallEvent
from countersign.agent_core.interventions.actions import Confirm, Deny, Guide, Proceed
from countersign.agent_core.interventions.dispatcher import GUIDE_LIMIT
from countersign.agent_core.interventions.handler import InterventionHandler, OnError
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.messages import Message, ToolUse, message_text, tool_uses
from countersign.agent_core.model_making import ModelSource, is_source
from countersign.agent_core.steering_judge import Judge, situation
from countersign.agent_core.steps import StepInfo

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

JUDGE_TIMEOUT = timedelta(minutes=5)

ToolSteering: TypeAlias = Proceed | Guide | Confirm
ModelSteering: TypeAlias = Proceed | Guide


class SteeringHandler(InterventionHandler):
    """Override `steer_before_tool`, `steer_after_model` or both; sync or async.

    A guided call does not run, and the model gets the feedback. A guided answer is discarded, and the
    model is called again with the feedback. Neither goes on for ever: after 10 guided calls in a row
    the handler denies the other calls of the turn unheard, and the 11th guided answer fails the turn.
    """

    name = "countersign:steering"
    guided_in_a_row = 0

    async def steer_before_tool(
        self, *, agent: "Agent", tool_use: ToolUse, event: BeforeToolCallEvent, **kwargs: Any
    ) -> ToolSteering:
        """Guide a call before it runs. An override may leave out `event`; `**kwargs` takes it.

        Args:
            agent: The agent.
            tool_use: The call, as it would run.
            event: What the call comes with; `event.once` keeps what was found out about it.
            **kwargs: For later additions.
        """
        return Proceed()

    async def steer_after_model(
        self, *, agent: "Agent", message: Message, stop_reason: str, **kwargs: Any
    ) -> ModelSteering:
        """Guide the model after it has answered.

        Args:
            agent: The agent; its conversation does not have the message yet.
            message: What the model answered.
            stop_reason: Why it stopped.
            **kwargs: For later additions.
        """
        return Proceed()

    def before_invocation(self, event: BeforeInvocationEvent, **kwargs: Any) -> Proceed:
        """A new prompt, a new start."""
        if event.messages:
            self.guided_in_a_row = 0
        return Proceed()

    async def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> ToolSteering | Deny:
        """See `steer_before_tool`."""
        if self.guided_in_a_row >= GUIDE_LIMIT:
            return Deny(
                reason=f"{GUIDE_LIMIT} calls in a row needed guidance. Stop, and say what could not be done and why."
            )
        found: Any = self.steer_before_tool(agent=event.agent, tool_use=event.tool_use, event=event)
        action: ToolSteering = await found if isinstance(found, Awaitable) else found
        self.guided_in_a_row = self.guided_in_a_row + 1 if isinstance(action, Guide) else 0
        return action

    async def after_model_call(self, event: AfterModelCallEvent, **kwargs: Any) -> ModelSteering:
        """See `steer_after_model`."""
        response = event.stop_response
        if response is None:
            return Proceed()
        found: Any = self.steer_after_model(
            agent=event.agent, message=response.message, stop_reason=response.stop_reason
        )
        action: ModelSteering = await found if isinstance(found, Awaitable) else found
        return action


@dataclass(frozen=True)
class _Setup:
    """What the factory says; in one object, so that it is not taken for something that the handler remembers."""

    name: str
    on_error: OnError
    tools: frozenset[str] | None
    before_tool: bool
    after_model: bool
    judge: Judge


class LLMSteeringHandler(SteeringHandler):
    """A model judges calls, answers or both by rules in words: go on, guide, or (calls only) ask a person.

    It sees the call or the answer, what the user last said, and the last calls with their results.
    Each call is judged once, however often it is resumed. Durably the judge runs as a step.

    Args:
        system_prompt: The rules.
        model: What judges; the agent's own model if None.
        tools: Names of the tools whose calls are judged; all if None.
        before_tool: Whether calls are judged.
        after_model: Whether answers are judged: messages that ask for no tool.
        name: Needed if an agent has more than one.
        on_error: What it means if the judge can't be reached, or says nothing that can be read: "deny"
            blocks the call or withholds the answer, "proceed" lets it pass, "throw" fails the turn.

    Raises:
        AgentDefinitionError: For an argument that can't be used.
    """

    def __init__(
        self,
        system_prompt: str,
        *,
        model: ModelSource | None = None,
        tools: Sequence[str] | None = None,
        before_tool: bool = True,
        after_model: bool = False,
        name: str = SteeringHandler.name,
        on_error: OnError = "deny",
    ) -> None:
        if not isinstance(system_prompt, str) or not system_prompt.strip():
            raise AgentDefinitionError(f"system_prompt must be the rules to judge by, not {system_prompt!r}")
        if model is not None and not is_source(model):
            raise AgentDefinitionError(
                f"model must be a model, a name like 'openai:gpt-5' or a function, not {model!r}"
            )
        if isinstance(tools, str):
            raise AgentDefinitionError(f"tools must be a list of tool names, not {tools!r}")
        if on_error not in get_args(OnError):
            raise AgentDefinitionError(f"on_error must be one of {get_args(OnError)}, not {on_error!r}")
        if not before_tool and not after_model:
            raise AgentDefinitionError("with before_tool=False and after_model=False there is nothing to steer")
        known = None if tools is None else frozenset(tools)
        self._setup = _Setup(name, on_error, known, before_tool, after_model, Judge(system_prompt, model))

    @property
    def name(self) -> str:  # type: ignore[override]  # an attribute in the base, so that a subclass can just set it
        """See `InterventionHandler.name`."""
        return self._setup.name

    @property
    def on_error(self) -> OnError:
        """See `InterventionHandler.on_error`."""
        return self._setup.on_error

    def steps(self, agent: "Agent") -> Sequence[StepInfo]:
        """See `InterventionHandler.steps`."""
        return [self._step(agent)]

    async def steer_before_tool(
        self, *, agent: "Agent", tool_use: ToolUse, event: BeforeToolCallEvent, **kwargs: Any
    ) -> ToolSteering:
        """Judge a call."""
        # A hook may have put another tool behind the call.
        names = {tool_use["name"], event.selected_tool.tool_name if event.selected_tool else tool_use["name"]}
        if not self._setup.before_tool or not (self._setup.tools is None or names & self._setup.tools):
            return Proceed()
        asked = situation(agent.messages, call={"tool": tool_use["name"], "input": tool_use["input"]})
        verdict = await event.once(f"{self.name}:judge", lambda: self._judged(agent, asked))
        action = self._action(verdict)
        if not isinstance(action, Confirm):
            return action
        shown = json.dumps(tool_use["input"], ensure_ascii=False)
        return Confirm(
            prompt=f'Tool "{tool_use["name"]}" requires human approval ({action.reason}). Input: {shown}',
            reason=action.reason,
        )

    async def steer_after_model(
        self, *, agent: "Agent", message: Message, stop_reason: str, **kwargs: Any
    ) -> ModelSteering:
        """Judge an answer."""
        if not self._setup.after_model or tool_uses(message):
            return Proceed()
        verdict = await self._judged(agent, situation(agent.messages, answer=message_text(message)))
        action = self._action(verdict)
        return Proceed() if isinstance(action, Confirm) else action

    def _step(self, agent: "Agent") -> StepInfo:
        async def judge(asked: JsonObject) -> JsonObject:
            return await self._setup.judge.verdict(asked, agent.model)

        return StepInfo(f"{self.name}:judge", judge, JUDGE_TIMEOUT)

    async def _judged(self, agent: "Agent", asked: JsonObject) -> JsonObject:
        """The verdict; one that failed is recorded too, so that a resumed call is not judged anew."""
        try:
            found: JsonObject = await self._step(agent).run(asked)
            spend(found.pop("usage", None))
            return found
        except PolicyViolationError:
            raise
        except Exception as error:
            return {"failed": f"the steering judge failed: {error}"}

    def _action(self, verdict: JsonObject) -> ToolSteering:
        if "failed" in verdict:
            raise ModelError(verdict["failed"])
        if verdict["decision"] == "guide":
            return Guide(feedback=verdict["feedback"])
        reason = verdict["feedback"]
        return Confirm(reason=reason) if verdict["decision"] == "confirm" else Proceed(reason=reason)
