"""The command that starts a session."""

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.looking import print_message, print_questions
from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.terminal import command, print_json

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.session import SessionHandle
    from countersign.agent_core.messages import Message
    from countersign.agent_core.wire import Question

_Cap = Annotated[int | None, typer.Option(min=1, help="Cap on one invocation.", show_default=False)]


@dataclass
class _Stop:
    """Where a session's loop has stopped: at questions, or with the model's last message."""

    questions: "list[Question]" = field(default_factory=list)
    message: "Message | None" = None
    stop_reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "stop_reason": self.stop_reason,
            "interrupts": [question.model_dump(mode="json") for question in self.questions],
            "message": self.message,
        }


async def _next_stop(handle: "SessionHandle", stays_open: bool) -> _Stop:
    """Wait for it; a failed turn raises."""
    if questions := await handle.wait_for_questions():
        return _Stop(questions, stop_reason="interrupt")
    if not stays_open:
        result = await handle.result()
        return _Stop(message=result.message, stop_reason=result.stop_reason)
    messages = [message async for message in handle.transcript()]
    return _Stop(message=messages[-1] if messages else None)


def start(
    agent: Annotated[str, typer.Argument(help="An agent that a worker serves.", metavar="AGENT", show_default=False)],
    prompt: Annotated[
        str,
        typer.Argument(
            help='What it is to do; "-" reads it from standard input.', metavar="PROMPT", show_default=False
        ),
    ],
    *,
    session_id: Annotated[
        str | None, typer.Option(help="An id of your own; else a fresh one.", show_default=False)
    ] = None,
    stay_open: Annotated[bool, typer.Option("--open", help="Take further prompts until it is closed or idle.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it asks, or is done.")] = False,
    limit_turns: _Cap = None,
    limit_total_tokens: _Cap = None,
    limit_output_tokens: _Cap = None,
    task_queue: Annotated[
        str, typer.Option(envvar="COUNTERSIGN_TASK_QUEUE", help="Task queue of the agent's workers.")
    ] = "countersign",
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Start an agent on a prompt; prints the new session's id."""
    text = sys.stdin.read() if prompt == "-" else prompt
    limits = {"turns": limit_turns, "total_tokens": limit_total_tokens, "output_tokens": limit_output_tokens}

    async def begin(client: "AgentClient") -> "tuple[SessionHandle, _Stop | None]":
        handle = await client.start(
            agent,
            text,
            session_id=session_id,
            lifetime="open" if stay_open else "turn",
            limits={name: cap for name, cap in limits.items() if cap is not None} or None,
            task_queue=task_queue,
        )
        if not wait:
            return handle, None
        if not as_json:
            print(f"started {handle.id}", file=sys.stderr)
        return handle, await _next_stop(handle, stay_open)

    handle, stop = run(Connection(address, namespace, profile), as_json, begin)
    if as_json:
        print_json({"session_id": handle.id, **(stop.as_json() if stop else {})})
    elif stop is None:
        print(handle.id)
        print(f"to follow it: {command('show', handle.id)}", file=sys.stderr)
    elif stop.questions:
        print_questions(handle.id, stop.questions)
    elif stop.message is not None:
        print_message(stop.message)
