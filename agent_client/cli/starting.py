"""The command that starts a session."""

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, TaskQueue, duration, text_of
from countersign.agent_client.cli.outcome import print_outcome
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.queues import queue_of
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE, command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.session import SessionHandle
    from countersign.agent_client.settling import Outcome

_Cap = Annotated[int | None, typer.Option(min=1, help="Cap on one invocation.", show_default=False)]


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
    deadline: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="How long each question waits: 45m, 3h, 2d.", show_default="the worker's, 30d"
        ),
    ] = None,
    limit_turns: _Cap = None,
    limit_total_tokens: _Cap = None,
    limit_output_tokens: _Cap = None,
    task_queue: TaskQueue = DEFAULT_TASK_QUEUE,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Start an agent on a prompt; prints the new session's id.

    A session that no worker takes waits for one. A mistyped agent is an error at once, unless each agent has
    a queue of its own: then nobody takes it, and this says which agent of a similar name is served.
    """
    text = text_of(prompt)
    waits = None if deadline is None else duration(deadline)

    async def begin(client: "AgentClient") -> "tuple[SessionHandle, Outcome | None, str | None]":
        from countersign.agent_client.starting import new_session_id

        identifier = new_session_id(agent) if session_id is None else session_id
        with _naming(identifier, "may have started", told=False):
            handle = await client.start(
                agent,
                text,
                session_id=identifier,
                lifetime="open" if stay_open else "turn",
                limits={
                    "turns": limit_turns,
                    "total_tokens": limit_total_tokens,
                    "output_tokens": limit_output_tokens,
                },
                deadline=waits,
                task_queue=task_queue,
            )
        told = wait and not as_json
        if told:
            print(f"started {handle.id}", file=sys.stderr)
        with _naming(handle.id, "started", told=told):
            trouble = await _trouble(client, handle, queue_of(task_queue, agent), stay_open and not as_json)
            if trouble is not None:
                trouble += await _similar(client, handle.id, task_queue, agent)
            if trouble is not None and not as_json:
                print(visible(trouble), file=sys.stderr)
            return handle, await handle.outcome() if wait else None, trouble

    handle, outcome, trouble = run(Connection(address, namespace, profile), as_json, begin)
    if outcome is not None:
        print_outcome(handle.id, outcome, as_json)
    elif as_json:
        print_json({"session_id": handle.id, "warning": trouble})
    else:
        print(handle.id)
        print(f"to follow it: {command('watch', handle.id)}", file=sys.stderr)


@contextlib.contextmanager
def _naming(session: str, state: str, *, told: bool) -> "Iterator[None]":
    """Whatever ends the command here says which session there is: who starts another one doubles its work.

    Args:
        session: The session's id.
        state: What is known of it.
        told: Whether that has been said.
    """
    from countersign.agent_client.errors import ClientError

    try:
        yield
    except asyncio.CancelledError:  # Ctrl-C
        if not told:
            print(f"{state} {visible(session)}", file=sys.stderr)
        raise
    except ClientError as error:
        error.session_id = error.session_id or session
        raise


async def _trouble(client: "AgentClient", handle: "SessionHandle", task_queue: str, say_how_to_end: bool) -> str | None:
    """That no worker takes the session, if none does.

    Args:
        client: Of the session.
        handle: The session.
        task_queue: Its workers' queue.
        say_how_to_end: Whether to say, of a session that has failed, that it stays open.

    Raises:
        AgentRunError: It has failed already, for instance because no worker knows the agent.
    """
    from countersign.agent_client.errors import AgentRunError
    from countersign.agent_client.first_cycle import trouble_at_start

    try:
        return await trouble_at_start(client.temporal, handle, task_queue)
    except AgentRunError:
        if say_how_to_end:
            closing = command("stop", handle.id, "--close")
            print(f"session {visible(handle.id)} stays open; end it with: {closing}", file=sys.stderr)
        raise


async def _similar(client: "AgentClient", session: str, task_queue: str, agent: str) -> str:
    """Which agents of a similar name workers serve, if they do, and what to do about the session of the wrong one."""
    from countersign.agent_client.similar_agents import similar_agents

    if not (names := await similar_agents(client.temporal, task_queue, agent)):
        return ""
    meant = " or ".join(map(repr, names))
    return f". Did you mean {meant}? Then end this one with: {command('stop', session, '--terminate')}"
