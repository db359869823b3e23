"""`Agent`: a definition of an agent that can also run right here."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from countersign.agent_core.agent_arguments import listed, system_text
from countersign.agent_core.cancellation import Cancellation
from countersign.agent_core.conversation_managers import ConversationManager, checked_manager
from countersign.agent_core.direct_calls import DirectCalls
from countersign.agent_core.effects import on_a_worker
from countersign.agent_core.errors import AgentDefinitionError, PolicyViolationError
from countersign.agent_core.hooks.events import AgentInitializedEvent, HookEvent
from countersign.agent_core.hooks.registry import HookProvider, HookRegistry
from countersign.agent_core.inprocess import InProcessSession
from countersign.agent_core.interventions.dispatcher import register_handlers
from countersign.agent_core.interventions.handler import InterventionHandler
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.limits import Limits
from countersign.agent_core.messages import AgentInput, Message, Messages, ToolResult
from countersign.agent_core.model_making import ModelSource, is_source
from countersign.agent_core.result import AgentResult
from countersign.agent_core.saving import SessionManager, checked_session_manager
from countersign.agent_core.snapshots import Memory
from countersign.agent_core.state import AgentState
from countersign.agent_core.structured_output import OutputTool, output_tool
from countersign.agent_core.tools.executors import ToolExecutor, checked_executor
from countersign.agent_core.tools.registry import ToolRegistry


class Agent:
    """A model, tools, and the hooks and handlers that watch over them.

    Args:
        model: What answers: a `Model`, a name such as "openai:gpt-5" or "bedrock:<id>", a function that
            returns one (called once, where the model is used), or a model of Strands.
        messages: A conversation to start from; on a worker, each session does.
        tools: Functions decorated with `@tool`, tools and modules of Strands, or lists of these.
        system_prompt: What the model is told first; text or text blocks.
        hooks: Providers (objects with `register_hooks`) or plain callbacks with an annotated event.
        interventions: Handlers, in the order in which they are asked.
        state: Initial `agent.state`; JSON. On a worker, that of each session.
        name: The agent's name.
        conversation_manager: What goes when the conversation gets too long for the model; nothing does if None.
        callback_handler: None, for Strands' sake: there is no output to switch off, and no pieces of text to be had.
        session_manager: Keeps the session of an in-process agent, open questions included, for a later process. Not
            used on a worker: there the session is the session manager.
        agent_id: Tells the agents of one session manager apart.
        record_direct_tool_call: Whether calls by `agent.tool.name()` stand in the conversation.
        tool_executor: How the calls of one message run: side by side (default), or one after the other.
        structured_output_model: The pydantic class of what each turn shall lead to; `AgentResult.structured_output`.
        structured_output_prompt: What a model is told that has ended its turn without it.

    Raises:
        AgentDefinitionError: If something is not what it should be, by name.
    """

    def __init__(
        self,
        model: ModelSource | None = None,
        messages: Messages | None = None,
        tools: Sequence[Any] | None = None,  # to mypy, a list of tools of several signatures is list[object]
        system_prompt: str | Sequence[Mapping[str, Any]] | None = None,
        *,
        hooks: Sequence[HookProvider | Callable[[Any], Any]] | None = None,
        interventions: Sequence[InterventionHandler] | None = None,
        state: AgentState | JsonObject | None = None,
        name: str = "agent",
        conversation_manager: ConversationManager | None = None,
        callback_handler: None = None,
        session_manager: SessionManager | None = None,
        agent_id: str = "default",
        record_direct_tool_call: bool = True,
        tool_executor: ToolExecutor | None = None,
        structured_output_model: type[BaseModel] | None = None,
        structured_output_prompt: str | None = None,
    ) -> None:
        if model is not None and not is_source(model):
            raise AgentDefinitionError(
                f"agent {name!r}: model must be a model, a name like 'openai:gpt-5' or a function that returns one, "
                f"not {model!r}"
            )
        if callback_handler is not None:
            raise AgentDefinitionError(
                f"agent {name!r}: callback_handler must be None: a model's text comes whole, when its call has ended. "
                "Use hooks (MessageAddedEvent) for what happens in a turn, or `countersign watch` for a session"
            )
        self.model = model
        self.name = name
        self._system_prompt = system_text(system_prompt)
        self.messages: Messages = list(messages or [])
        self.state = state if isinstance(state, AgentState) else AgentState(state)
        self.tool_registry = ToolRegistry(listed("tools", tools))
        self.interventions: list[InterventionHandler] = listed("interventions", interventions)
        self.conversation_manager = checked_manager(conversation_manager)
        self.session_manager, self.agent_id = checked_session_manager(session_manager, name), agent_id
        self.record_direct_tool_call = record_direct_tool_call
        self.tool_executor = checked_executor(tool_executor, name)
        self.output_tool: OutputTool | None = None
        self.structured_output_prompt = structured_output_prompt
        self.output_tool = output_tool(self, structured_output_model, None)
        self.cancellation = Cancellation()
        self.hooks = HookRegistry()
        self.conversation_manager.register_hooks(self.hooks)
        self._providers: list[object] = [self.conversation_manager]
        for hook in listed("hooks", hooks):
            self._add(hook)
        register_handlers(self.interventions, self.hooks)
        self.memory = Memory([*self._providers, *self.interventions])
        self._session: InProcessSession | None = None
        self._for_a_worker = on_a_worker.get()  # kept here, too: a hook may run code in a context of its own
        for callback in self.hooks.callbacks_for(AgentInitializedEvent(self)):
            callback(AgentInitializedEvent(self))
        for handler in self.interventions:
            handler.check_agent(self)
        if session_manager is not None and not on_a_worker.get():
            self._here()  # restores what is kept

    def _add(self, hook: HookProvider | Callable[[Any], Any]) -> None:
        if isinstance(hook, HookProvider):
            self.hooks.add_hook(hook)
            self._providers.append(hook)
        elif callable(hook):
            self.hooks.add_callback(None, hook)
        else:
            raise AgentDefinitionError(f"{hook!r} is neither a hook provider nor a callback")

    def add_hook(self, callback: Callable[[Any], Any], event_type: type[HookEvent] | None = None) -> None:
        """Register one more callback."""
        self.hooks.add_callback(event_type, callback)

    @property
    def system_prompt(self) -> str | None:
        """What the model is told first. May be set, to text or text blocks."""
        return self._system_prompt

    @system_prompt.setter
    def system_prompt(self, value: str | Sequence[Mapping[str, Any]] | None) -> None:
        self._system_prompt = system_text(value)

    @property
    def tool_names(self) -> list[str]:
        """Names of the tools."""
        return self.tool_registry.names()

    @property
    def tool(self) -> DirectCalls:
        """Each tool as a function: `agent.tool.delete_files(paths=["a"])` runs it here and now, with its hooks and
        handlers; see `agent_core.direct_calls`."""
        return DirectCalls(self)

    def _call_directly(self, name: str, arguments: JsonObject, note: str | None, record: bool) -> ToolResult:
        return self._here().call_tool_blocking(name, arguments, note, record)

    def cancel(self, *, message: str | None = None, after_current_tools: bool = False) -> None:
        """Stop the running invocation at the next safe place; from any thread, and from hooks.

        Before a message's tools begin, its calls get an error result; afterwards they run, those with a
        `SequentialToolExecutor` behind the present one excepted. While questions are open, the next answers
        find the turn cancelled, and the next prompt begins a new one. Before an invocation it cancels that one.

        Args:
            message: The words that the turn ends with.
            after_current_tools: True to let the calls that the model has asked for run first.
        """
        self.cancellation.ask(message, after_current_tools)

    @property
    def cancel_signal(self) -> threading.Event:
        """Set while a cancellation is wanted. To be read only; `cancel()` sets it."""
        return self.cancellation.signal

    def _load(
        self, messages: Sequence[Message], state: JsonObject, handlers: JsonObject, *, fresh: bool = False
    ) -> None:
        """Take over a session: its conversation, state, and what hooks and handlers remember.

        A fresh one starts from this agent's own messages and state: they come before the given ones.
        """
        if fresh:
            own = self.messages
            messages = messages if list(messages[: len(own)]) == own else [*own, *messages]
            state = {**self.state.get(), **state}
        self.messages[:] = messages
        self.state = AgentState(state)
        self.memory.restore(handlers)

    def __call__(
        self,
        prompt: AgentInput = None,
        *,
        limits: Limits | None = None,
        invocation_state: JsonObject | None = None,
        cancel_signal: threading.Event | None = None,
        structured_output_model: type[BaseModel] | None = None,
        structured_output_prompt: str | None = None,
        **more: Any,
    ) -> AgentResult:
        """Run the agent here and now, from code that is not async. See `invoke_async`."""
        output = output_tool(self, structured_output_model, structured_output_prompt)
        return self._here().run_blocking(prompt, limits, _state(invocation_state, more), cancel_signal, output)

    async def invoke_async(
        self,
        prompt: AgentInput = None,
        *,
        limits: Limits | None = None,
        invocation_state: JsonObject | None = None,
        cancel_signal: threading.Event | None = None,
        structured_output_model: type[BaseModel] | None = None,
        structured_output_prompt: str | None = None,
        **more: Any,
    ) -> AgentResult:
        """Run the agent in this process until its loop stops.

        Args:
            prompt: Text, content blocks, or a list of `interruptResponse` blocks to resume with.
            limits: Caps on it: `{"turns", "total_tokens", "output_tokens"}`, each optional.
            invocation_state: JSON that hooks and tools can see.
            cancel_signal: The caller's own event; when it is set, the invocation stops as by `cancel()`.
            structured_output_model: The class of what this turn shall lead to, in the place of the agent's own; asked
                for until the turn ends, however often it pauses.
            structured_output_prompt: As for the agent, for this turn.
            **more: The same, by name, as Strands still takes it; `invocation_state` is then one name of them.

        Raises:
            EventLoopException: If the model, a hook or a handler failed; the cause is inside.
            AnswerRefused: If answers are refused; nothing has changed.
            StructuredOutputException: If the model does not hand over what it is asked for.
            TypeError: If the prompt is none of the above.
            ConcurrencyException: If the agent is running already.
        """
        output = output_tool(self, structured_output_model, structured_output_prompt)
        return await self._here().run(prompt, limits, _state(invocation_state, more), cancel_signal, output)

    def _here(self) -> InProcessSession:
        if on_a_worker.get() or self._for_a_worker:
            raise PolicyViolationError(
                f"agent {self.name!r} can't be run by a hook, handler or factory on a worker: nothing of it would be "
                "recorded. Run it in a function under @step and await that, or start a session for it"
            )
        if self._session is None:
            self._session = InProcessSession(self)
        return self._session


def _state(invocation_state: JsonObject | None, more: JsonObject) -> JsonObject:
    if not more:
        return invocation_state or {}
    return more if invocation_state is None else {**more, "invocation_state": invocation_state}
