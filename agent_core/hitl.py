"""`HumanInTheLoop`: tool calls wait for a person, except those that are allowed, trusted or judged harmless."""

import difflib
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from countersign.agent_core.classifying import (
    Classifier,
    ClassifierResult,
    LLMClassifierConfig,
    LLMJudge,
    asked_call,
    decided,
)
from countersign.agent_core.decisions import DecisionModel
from countersign.agent_core.effects import spend
from countersign.agent_core.errors import AgentDefinitionError, PolicyViolationError
from countersign.agent_core.hooks.events import BeforeToolCallEvent
from countersign.agent_core.interventions.actions import Confirm, Edit, Evaluate, Proceed
from countersign.agent_core.interventions.handler import InterventionHandler
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.plain_answers import approves
from countersign.agent_core.settling import settled
from countersign.agent_core.steps import StepInfo

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

TRUSTED_TOOLS_KEY = "countersign:trusted-tools"
"""Key in `agent.state` of the names that a person said to trust in this session."""

NEAR = 0.85
"""How alike (0 to 1) two names are of which one is taken for a misspelt other one."""

ASK_TIMEOUT = timedelta(hours=12)
"""Of all attempts together; the cycle, which waits, may last for 24 hours. Who needs longer leaves `ask` out."""

CLASSIFIER_TIMEOUT = timedelta(minutes=5)

_TRUST = frozenset({"t", "trust"})

Ask = Callable[..., Any]
"""Called with the prompt; returns the response, or an awaitable of it. None denies."""


class HumanInTheLoop(InterventionHandler):
    """Ask a person before a tool runs.

    A response is "y", "n", "t", words that say why not, or
    `{"decision": "approve" | "edit" | "reject" | "trust", "input": {...}, "reason": "..."}`: an edit
    runs the call with that input instead, if it fits the tool's schema.

    Args:
        allowed_tools: Tools that run without asking: names, "*" for all, "!name" for one of the
            agent's that always asks and can't be trusted.
        classifier: Asks only about calls that it finds risky: True or an `LLMClassifierConfig` for an
            LLM, a `DecisionModel`, or a function from the event to a `ClassifierResult`. It judges each
            call once; if it fails or is unsure, a person is asked.
        enable_trust: True lets an answer "t" or "trust" approve the call and all later calls of
            that tool in this session.
        evaluate_trust: Whether an answer means trust; sync or async. Heard only with `enable_trust`.
        evaluate: Whether an answer approves; sync or async. True, "y", "yes" and decisions do if None.
        ask: Asks inline instead of pausing: "stdio" at this process's terminal, or a function from the
            prompt to the response. Durably the function runs as a step of at most 12 hours, again only if
            its worker was lost; None denies, and what it raises ends the turn.

    Raises:
        AgentDefinitionError: For an argument that can't be used.
    """

    name = "countersign:human-in-the-loop"

    def __init__(
        self,
        *,
        allowed_tools: Sequence[str] | None = None,
        classifier: bool | LLMClassifierConfig | DecisionModel | Classifier | None = None,
        enable_trust: bool = False,
        evaluate_trust: Evaluate | None = None,
        evaluate: Evaluate | None = None,
        ask: Ask | Literal["stdio"] | None = None,
    ) -> None:
        names = allowed_tools or []
        if isinstance(names, str) or not all(isinstance(item, str) and item for item in names):
            raise AgentDefinitionError(f"allowed_tools must be a list of tool names, not {allowed_tools!r}")
        if ask is not None and ask != "stdio" and not callable(ask):
            raise AgentDefinitionError(f"ask must be a function or 'stdio', not {ask!r}")
        self._allowed = frozenset(names)
        self._classifier = _checked_classifier(classifier)
        self._judge_model = LLMJudge(self._classifier) if isinstance(self._classifier, LLMClassifierConfig) else None
        self._enable_trust = enable_trust
        self._evaluate_trust = evaluate_trust or means_trust
        self._evaluate = evaluate or decision
        self._stdio = ask == "stdio"
        self._ask: Ask | None = _stdio_ask(enable_trust) if ask == "stdio" else ask

    def steps(self, agent: "Agent") -> Sequence[StepInfo]:
        """See `InterventionHandler.steps`."""
        return [step for step in (self._ask_step(), self._verdict_step(agent)) if step is not None]

    def check_agent(self, agent: "Agent") -> None:
        """See `InterventionHandler.check_agent`. A misspelt "!name" would leave a tool without its gate."""
        known = [*agent.tool_names, *([agent.output_tool.tool_name] if agent.output_tool else [])]
        for name in sorted(item[1:] for item in self._allowed if item.startswith("!")):
            near = difflib.get_close_matches(name, known, 1, NEAR)
            if name not in known and near:  # one handler may serve several agents, of which some lack the tool
                raise AgentDefinitionError(
                    f"HumanInTheLoop(allowed_tools=[..., '!{name}']): agent {agent.name!r} has no tool {name!r}, and "
                    f"has {near[0]!r}. If that is meant, name it; else leave '!{name}' out for this agent"
                )

    def check_durable(self) -> None:
        """See `InterventionHandler.check_durable`."""
        if self._stdio:
            raise AgentDefinitionError(
                "HumanInTheLoop(ask='stdio') needs a terminal, and a worker has none; leave `ask` out: questions then "
                "wait, and are answered with `countersign chat` or `countersign approve`"
            )

    async def before_tool_call(self, event: BeforeToolCallEvent, **kwargs: Any) -> Proceed | Confirm:
        """Proceed if the tool is allowed or trusted, or the call judged harmless; else ask."""
        tool = event.tool_use["name"]
        # A hook may have put another tool behind the call: neither name may need an approval.
        names = {tool, event.selected_tool.tool_name if event.selected_tool is not None else tool}
        if not any(self._needs_approval(event, name) for name in names):
            return Proceed()
        reason = None
        if self._classifier is not None and not any(f"!{name}" in self._allowed for name in names):
            verdict = await event.once(f"{self.name}:verdict", lambda: self._classify(event))
            if not verdict["requires"]:
                return Proceed(reason=verdict["reason"])
            reason = verdict["reason"]
        shown = json.dumps(event.tool_use["input"], ensure_ascii=False)
        trustable = self._enable_trust and len(names) == 1 and f"!{tool}" not in self._allowed
        prompt = f'Tool "{tool}" requires human approval{f" ({reason})" if reason else ""}. Input: {shown}'
        ask = self._ask_step()
        return Confirm(
            prompt=prompt,
            evaluate=self._judge(event, tool, trustable),
            answers={"approve": "y", "deny": "n", **({"trust": "t"} if trustable else {})},
            ask=None if ask is None else lambda: ask.run(prompt),
        )

    def _needs_approval(self, event: BeforeToolCallEvent, tool: str) -> bool:
        if f"!{tool}" in self._allowed:
            return True
        if self._enable_trust and tool in (event.agent.state.get(TRUSTED_TOOLS_KEY) or []):
            return False
        return "*" not in self._allowed and tool not in self._allowed

    def _ask_step(self) -> StepInfo | None:
        return StepInfo(f"{self.name}:ask", self._ask, ASK_TIMEOUT, retried=False) if self._ask is not None else None

    def _verdict_step(self, agent: "Agent") -> StepInfo | None:
        """What judges with I/O, if anything does."""
        judge, model = self._judge_model, self._classifier

        async def verdict(call: JsonObject) -> JsonObject:
            if isinstance(model, DecisionModel):
                return await decided(model, call)
            assert judge is not None
            return await judge.verdict(call, agent.model)

        wanted = judge is not None or isinstance(model, DecisionModel)
        return StepInfo(f"{self.name}:verdict", verdict, CLASSIFIER_TIMEOUT) if wanted else None

    async def _classify(self, event: BeforeToolCallEvent) -> JsonObject:
        """The classifier's verdict; one that fails means that a person is asked."""
        try:
            step = self._verdict_step(event.agent)
            if step is not None:
                found: JsonObject = await step.run(asked_call(event.tool_use["name"], event.tool_use["input"]))
                spend(found.pop("usage", None))
                return found
            assert callable(self._classifier)
            result = self._classifier(event)
            if isinstance(result, Awaitable):
                result = await result
            if not isinstance(result, ClassifierResult):
                raise TypeError(f"it returned {result!r:.100} instead of a ClassifierResult")
        except PolicyViolationError:
            raise
        except Exception as error:
            return {"requires": True, "reason": f"the classifier failed: {error}"}
        return {"requires": bool(result.requires_human_in_the_loop), "reason": result.reason}

    def _judge(self, event: BeforeToolCallEvent, tool: str, trustable: bool) -> Callable[[Any], Awaitable[bool | Edit]]:
        async def judge(response: Any) -> bool | Edit:
            if trustable and await _resolved(self._evaluate_trust(response)):
                trusted = event.agent.state.get(TRUSTED_TOOLS_KEY) or []
                event.agent.state.set(TRUSTED_TOOLS_KEY, sorted({*trusted, tool}))
                return True
            return await _resolved(self._evaluate(response))

        return judge


def _checked_classifier(given: Any) -> LLMClassifierConfig | DecisionModel | Classifier | None:
    if given is None or given is False:
        return None
    if given is True:
        return LLMClassifierConfig()
    if isinstance(given, (LLMClassifierConfig, DecisionModel)):
        return given
    if callable(given):
        function: Classifier = given
        return function
    raise AgentDefinitionError(
        f"classifier must be True, an LLMClassifierConfig, a DecisionModel or a function, not {given!r}"
    )


def _stdio_ask(with_trust: bool) -> Ask:
    """Asks at the terminal, one question at a time."""
    lock, options = threading.Lock(), "(y/n/t)" if with_trust else "(y/n)"

    def ask(prompt: str) -> str:
        with lock:
            return input(f"{prompt} {options}: ").strip()

    return ask


def decision(response: Any) -> bool | Edit:
    """Whether a response approves: what `approves` takes, or a decision; an edit with its input."""
    if not isinstance(response, dict):
        return approves(response)
    if response.get("decision") == "edit":
        return Edit(response.get("input"))
    return response.get("decision") == "approve"


def means_trust(response: Any) -> bool:
    """True for "t" and "trust" (trimmed, any case), and for the decision to trust."""
    if isinstance(response, dict):
        return response.get("decision") == "trust"
    return isinstance(response, str) and response.strip().lower() in _TRUST


async def _resolved(verdict: Any) -> bool | Edit:
    found = await settled(verdict)
    return found if isinstance(found, Edit) else bool(found)
