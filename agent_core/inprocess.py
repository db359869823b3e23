"""Runs an agent in this process: the same session and cycle as the durable ones, without Temporal.

For unit tests, notebooks and the first five minutes. This driver, with `inprocess_effects`, is the one
part of agent_core that looks at the clock; nothing else here imports it but `Agent`. Threads are started
here, in `inprocess_effects`, `session_keeping` and `tools.strands_tool`.
"""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.from_thread

from countersign.agent_core.answers import check_said_alike
from countersign.agent_core.cycle import CycleEnd, run_cycle
from countersign.agent_core.direct_calls import as_json, call_directly, tool_name
from countersign.agent_core.errors import ConcurrencyException, EventLoopException, StructuredOutputException
from countersign.agent_core.inprocess_effects import InProcessEffects
from countersign.agent_core.interrupts import as_interrupt
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.limits import Limits, check_limit_names
from countersign.agent_core.messages import ToolResult, ToolUse
from countersign.agent_core.model_making import make_model
from countersign.agent_core.models import Model
from countersign.agent_core.result import AgentResult, Metrics
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.session_keeping import Keeper
from countersign.agent_core.structured_output import OutputTool
from countersign.agent_core.wire import Limits as WireLimits
from countersign.agent_core.wire import Recovery, SessionOptions

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

_numbers = itertools.count(1)

T = TypeVar("T")


class InProcessSession:
    """One agent's session in this process.

    Args:
        agent: The agent; its conversation, state and handlers stay its own.
    """

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        session_id = f"local-{datetime.now(UTC):%Y%m%d%H%M%S%f}-{next(_numbers)}"
        options = SessionOptions(lifetime="open")
        self._session = Session(SessionState(session_id=session_id, agent=agent.name, options=options))
        self._session.state.agent_state = agent.state.get()
        self._keeper = Keeper(agent)
        self._session = self._keeper.restore(self._session)
        self._running = False
        self._output: OutputTool | None = None
        self._made: tuple[object, Model] | None = None

    def run_blocking(
        self,
        prompt: Any,
        limits: Limits | None,
        invocation_state: JsonObject,
        cancel_signal: threading.Event | None = None,
        output: OutputTool | None = None,
    ) -> AgentResult:
        """Run from code that is not async; in a thread of its own if a loop is running here."""
        return _blocking(lambda: self.run(prompt, limits, invocation_state, cancel_signal, output))

    async def run(
        self,
        prompt: Any,
        limits: Limits | None,
        invocation_state: JsonObject,
        cancel_signal: threading.Event | None = None,
        output: OutputTool | None = None,
    ) -> AgentResult:
        """See `Agent.invoke_async`."""
        with self._alone("the agent is already running; await it, or build another one"):
            if self._take_input(prompt, limits, invocation_state) or output is not None:
                self._output = output  # what was wanted with the prompt is wanted until the turn ends
            self._agent.cancellation.begin(cancel_signal)
            return await self._keeper.kept(self._session, self._invocation())

    def call_tool_blocking(self, name: str, arguments: JsonObject, note: str | None, record: bool) -> ToolResult:
        """See `direct_calls.DirectCalls`."""
        return _blocking(lambda: self._call_tool(name, arguments, note, record))

    async def _call_tool(self, name: str, arguments: JsonObject, note: str | None, record: bool) -> ToolResult:
        agent, state = self._agent, self._session.state
        if state.pending is not None:
            raise RuntimeError("cannot directly call tool during interrupt")
        found, given = tool_name(agent, name), as_json(arguments, f"the input of {name}")
        with self._alone("a direct tool call can't be made while the agent runs; wait for the end of its invocation"):
            effects = InProcessEffects(agent, None)
            use_id = f"tooluse_{name}_{effects.now():%Y%m%d%H%M%S%f}{next(_numbers)}"
            use: ToolUse = {"toolUseId": use_id, "name": found, "input": given}
            called = call_directly(agent, state, use, note, record, effects)
            return await self._keeper.kept(self._session, called)

    @contextlib.contextmanager
    def _alone(self, busy: str) -> Iterator[None]:
        if self._running:
            raise ConcurrencyException(busy)
        self._running = True
        try:
            yield
        finally:
            self._running = False

    def _take_input(self, prompt: Any, limits: Limits | None, invocation_state: JsonObject) -> bool:
        """Take a prompt, or answers. True if it begins a turn."""
        state, now = self._session.state, datetime.now(UTC)
        waiting = state.pending is not None
        responses = isinstance(prompt, list) and any(isinstance(b, dict) and "interruptResponse" in b for b in prompt)
        if waiting and not responses and self._agent.cancellation.now:
            self._session.stop(now, "cancelled")
            self._agent.messages[:] = self._session.conversation()
            self._agent.cancellation.end()  # it has had its effect
        elif waiting and not responses and prompt != []:
            error = TypeError(
                f"prompt_type={type(prompt)} | must resume from interrupt with list of interruptResponse's"
            )
            error.add_note("an empty list resumes without an answer, and returns the open questions")
            raise error
        self._session.expire(now)
        if waiting and prompt == []:
            return False
        if responses:
            self._session.check_choices(prompt)
            check_said_alike(prompt)
            self._session.answer(prompt, now, "in-process")
            return False
        check_json(invocation_state, "invocation_state")
        state.options.limits = _checked_limits(limits or {})
        state.options.invocation_state = invocation_state
        state.invocation_state = invocation_state
        state.agent_state = self._agent.state.get()
        state.replace([list(self._agent.messages)])  # as its user may have edited it
        self._session.prompt(prompt, now)
        return True

    async def _invocation(self) -> AgentResult:
        try:
            return await self._until_it_stops()
        finally:
            self._agent.cancellation.end()

    async def _until_it_stops(self) -> AgentResult:
        effects = InProcessEffects(self._agent, self._model())
        end: CycleEnd | None = None
        while (given := self._session.next_cycle(effects.now())) is not None:
            effects.begin(given.cycle, partial(self._keeper.before_tools, self._session, given))
            try:
                end = await run_cycle(self._agent, given, self._session.conversation(), effects, self._output)
            except BaseException as error:  # cancelled, or Ctrl-C: as for a lost worker, and the turn is over
                self._session.state.stopping = True
                reason = f"the invocation was ended by {type(error).__name__}"
                self._session.recover(Recovery(reason=reason, cycles=[effects.done]), given, effects.now())
                self._session.state.failures = 0  # a cancellation is none
                self._agent.messages[:] = self._session.conversation()
                raise
            self._session.finish_cycle(end.outcome, effects.now())
        if end is None:
            return self._waiting()
        if end.cause is not None:
            if isinstance(end.cause, (EventLoopException, StructuredOutputException)):  # the caller's, as in Strands
                raise end.cause
            raise EventLoopException(end.cause) from end.cause
        return self._result(end)

    def _model(self) -> Model | None:
        """The agent's model, made once and again only if the agent was given another."""
        source = self._agent.model
        if source is None:
            return None
        if self._made is None or self._made[0] is not source:
            self._made = (source, make_model(source))
        return self._made[1]

    def _waiting(self) -> AgentResult:
        """What the agent waits for, if there was nothing to go on with."""
        state = self._session.state
        return AgentResult(
            stop_reason="interrupt",
            message=state.pending.message if state.pending else {"role": "assistant", "content": []},
            metrics=Metrics.of(state.progress),
            state=state.invocation_state.get("request_state", {}),
            interrupts=[as_interrupt(question) for question in self._session.open_questions()] or None,
        )

    def _result(self, end: CycleEnd) -> AgentResult:
        outcome = end.outcome
        return AgentResult(
            stop_reason=outcome.stop_reason,
            message=outcome.message or {"role": "assistant", "content": []},
            metrics=Metrics.of(outcome.progress),
            state=outcome.invocation_state.get("request_state", {}),
            interrupts=[as_interrupt(question) for question in self._session.open_questions()] or None,
            structured_output=end.output,
        )


def _blocking(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine from code that is not async; in a thread of its own if a loop is running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call())
    with anyio.from_thread.start_blocking_portal() as portal:
        result: T = portal.call(call)
        return result


def _checked_limits(given: Limits) -> WireLimits:
    """Limits as they are used.

    Raises:
        TypeError: For an unknown limit, and for one that is no positive whole number.
    """
    check_limit_names(given)
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise TypeError(f"limits[{name!r}] must be a positive whole number, not {value!r}")
    return WireLimits.model_validate(given)
