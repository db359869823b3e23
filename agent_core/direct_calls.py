"""Direct calls: `agent.tool.delete_files(paths=[...])`, made by the program itself and not by a model.

Hooks and handlers are heard as for a batch of this one call, and what they refuse does not run. Nobody can be asked:
there is no loop that could pause, so a question is an error and the tool does not run. The audit trail gets the call's
lines. In-process only: on a worker such a call would be neither asked about nor recorded; there it is refused by name.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic_core import to_jsonable_python

from countersign.agent_core.cycle.callbacks import CallbackRunner
from countersign.agent_core.cycle.context import CycleContext
from countersign.agent_core.cycle.managing import Managing
from countersign.agent_core.cycle.tool_phase import ToolPhase
from countersign.agent_core.effects import Effects, current_effects, in_cycle, on_a_worker
from countersign.agent_core.errors import CallbackError, PolicyViolationError
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.messages import (
    Message,
    ToolResult,
    ToolUse,
    add_usage,
    assistant_text,
    results_message,
    user_message,
)
from countersign.agent_core.session import SessionState
from countersign.agent_core.session_keeping import noted_on
from countersign.agent_core.wire import CycleInput, CycleOutcome, Pending, TurnProgress

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent


class DirectCalls:
    """`agent.tool`: each tool as a function. It has no names of its own that a tool could have, too."""

    def __init__(self, agent: "Agent") -> None:
        self.__agent = agent

    def __dir__(self) -> list[str]:
        return sorted(self.__agent.tool_names)

    def __getattr__(self, name: str) -> Callable[..., ToolResult]:
        if name.startswith(("__", "_DirectCalls__")):
            raise AttributeError(name)
        agent = self.__agent

        def call(
            user_message_override: str | None = None, record_direct_tool_call: bool | None = None, **arguments: Any
        ) -> ToolResult:
            """Call the tool.

            Args:
                user_message_override: Stands before the note of the call in the conversation.
                record_direct_tool_call: Whether the conversation records it; the agent's setting if None.
                **arguments: The tool's input.

            Returns:
                The tool's result; with status "error" if the tool failed, is refused, or the input does not fit.

            Raises:
                AttributeError: If there is no such tool.
                RuntimeError: If the agent waits for answers, or a hook or handler of the call asks a person.
                ConcurrencyException: If the agent is running.
                PolicyViolationError: On a worker, and in a hook, handler or tool of a running agent.
                Exception: What a hook or handler raised.
            """
            if on_a_worker.get() or agent._for_a_worker or current_effects.get() is not None:
                raise PolicyViolationError(
                    f"agent.tool.{name}() can't be called by hooks, handlers, tools or factories of a running agent: "
                    "the call would be neither asked about nor recorded. Let the model ask for the tool; or put what "
                    "must happen into a function under @step and await that"
                )
            record = agent.record_direct_tool_call if record_direct_tool_call is None else record_direct_tool_call
            return agent._call_directly(name, arguments, user_message_override, record)

        call.__name__ = name
        return call


def tool_name(agent: "Agent", name: str) -> str:
    """The tool that an attribute stands for: underscores may stand for hyphens.

    Raises:
        AttributeError: If there is none.
    """
    if agent.tool_registry.get(name) is not None:
        return name
    found = next((known for known in agent.tool_names if known.replace("-", "_") == name), None)
    if found is None:
        raise AttributeError(f"Tool '{name}' not found")
    return found


async def call_directly(
    agent: "Agent", state: SessionState, use: ToolUse, note: str | None, record: bool, effects: Effects
) -> ToolResult:
    """Run one call with its hooks and handlers.

    Args:
        agent: The agent, with its conversation and state in place.
        state: The session: its audit trail and usage get what the call leaves, however it ends.
        use: The call; its id is like no other's, and its input is JSON.
        note: Stands before the note of the call in the conversation.
        record: Whether the conversation gets the call.
        effects: The way to tools, steps and the clock.

    Raises:
        RuntimeError: If somebody asks a person.
        Exception: What a hook or handler raised; if the tool had run by then, it is recorded all the same.
    """
    context, result = _context(agent, state, use, effects), None
    try:
        with in_cycle(effects, context.spend):
            result = await _heard(context, use, note, record)
    except BaseException as error:
        first = error.cause if isinstance(error, CallbackError) else error
        with noted_on(first, "what hooks and handlers remember could not be kept"):
            state.handlers = agent.memory.take()
        if first is not error:
            raise first from error
        raise
    finally:
        usage = context.progress.usage
        state.progress.usage = add_usage(state.progress.usage, usage)
        ended = result["status"] if result is not None else "no result"
        context.note("direct_call", tool=use["name"], tool_use_id=use["toolUseId"], ended=ended, usage=dict(usage))
        for line in context.audit:
            state.note(line)
    state.handlers = agent.memory.take()
    if result is None:
        raise RuntimeError("cannot raise interrupt in direct tool call")
    return result


def _context(agent: "Agent", state: SessionState, use: ToolUse, effects: Effects) -> CycleContext:
    """The call's surroundings: those of the session's last cycle, with ids and keys that are this call's own."""
    given = CycleInput(
        agent=agent.name,
        session_id=state.session_id,
        session_run=f"{state.run}/{use['toolUseId']}",
        cycle=state.cycle,
        invocation_state=dict(use["input"]),
    )
    runner = CallbackRunner(agent, effects, given.invocation_state)
    return CycleContext(agent, given, effects, runner, TurnProgress(), given.invocation_state, 0)


async def _heard(context: CycleContext, use: ToolUse, note: str | None, record: bool) -> ToolResult | None:
    """The call's result, recorded; None if somebody asked and it has not run."""
    pending = Pending(origin_cycle=context.given.cycle, message={"role": "assistant", "content": [{"toolUse": use}]})
    failure: CallbackError | None = None
    try:
        await ToolPhase(context, pending).alone()
    except CallbackError as error:
        failure = error
    result = pending.results.get(0)
    if result is not None and record:
        for part in _record(context.agent, use, result, note):
            await context.add_message(part)
        await Managing(context).after_turn(CycleOutcome(stop_reason="end_turn", last_cycle=context.given.cycle))
    if failure is not None:
        raise failure
    return result


def as_json(arguments: JsonObject, what: str) -> JsonObject:
    """Arguments as JSON; what is none becomes text that says so, and fits no schema.

    Raises:
        TypeError: If even that is not possible, for instance for a number that is none.
    """
    found: JsonObject = to_jsonable_python(arguments, fallback=_unserialisable)
    check_json(found, what)
    return found


def _unserialisable(value: Any) -> str:
    return f"<<non-serializable: {type(value).__qualname__}>>"


def _record(agent: "Agent", use: ToolUse, result: ToolResult, note: str | None) -> list[Message]:
    """The call as an exchange in the conversation: four messages, as in Strands."""
    tool = agent.tool_registry.get(use["name"])
    known = tool.tool_spec["inputSchema"]["json"].get("properties", {}) if tool is not None else {}
    shown = {key: value for key, value in use["input"].items() if key in known}
    text = f"agent.tool.{use['name']} direct tool call.\nInput parameters: {json.dumps(shown)}\n"
    return [
        user_message([*([{"text": f"{note}\n"}] if note else []), {"text": text}]),
        {"role": "assistant", "content": [{"toolUse": {**use, "input": shown}}]},
        results_message([result]),
        assistant_text(f"agent.tool.{use['name']} was called."),
    ]
