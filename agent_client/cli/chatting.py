"""The command `chat`: a conversation with an agent at the terminal."""

import asyncio
import sys
from typing import Annotated

import typer

from countersign.agent_client.cli.chat_wish import Wish
from countersign.agent_client.cli.options import Address, Namespace, Profile, TaskQueue, Who
from countersign.agent_client.cli.running import Connection, UsageError, leaving
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE

HUNG_UP = 129
"""Exit code after SIGHUP, as shells have it."""


def chat(
    agent: Annotated[
        str | None,
        typer.Argument(help="An agent that a worker serves; not with --session.", metavar="AGENT", show_default=False),
    ] = None,
    prompt: Annotated[
        str | None, typer.Argument(help="The first prompt; else you are asked.", metavar="PROMPT", show_default=False)
    ] = None,
    *,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="ID", help="Go on with this session, also if it waits.", show_default=False),
    ] = None,
    close: Annotated[bool, typer.Option("--close", help="End the session on leaving; else it stays open.")] = False,
    who: Who = None,
    task_queue: TaskQueue = DEFAULT_TASK_QUEUE,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Talk to an agent, and answer what it asks, at the terminal.

    A question is shown in full and answered with y, n, t where trust is offered, or other words,
    which are sent as the answer. It may be answered elsewhere as well: the first answer counts.
    What is typed before a question appears is dropped. Ctrl-C stops the turn that runs, twice
    leaves; Ctrl-D or /quit leaves, and the session stays open (30 days without a prompt end it);
    /help lists the rest. The conversation lives in Temporal: it goes on after a crash of the
    worker, and with --session after one of this terminal.
    """
    with leaving(as_json=False):
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "chat needs a terminal; in a script use: countersign start AGENT PROMPT --wait, and countersign respond"
            )
        if agent is None and session is None:
            raise UsageError("say whom to talk to: countersign chat AGENT, or countersign chat --session ID")
        if session is not None and prompt is not None:
            raise UsageError("a session that is taken up gets its prompts at the terminal; leave PROMPT out")
        wish = Wish(agent or "", prompt, session, who, task_queue, close)
        try:
            asyncio.run(_talk(Connection(address, namespace, profile), wish))
        except Exception:
            if not sys.stdin.isatty():  # the terminal was closed: nobody is there to be told
                raise SystemExit(HUNG_UP) from None
            raise


async def _talk(connection: Connection, wish: Wish) -> None:
    from countersign.agent_client.cli.chat_line import Terminal
    from countersign.agent_client.cli.conversation import Conversation
    from countersign.agent_client.client import AgentClient

    client = await AgentClient.connect(connection.address, connection.namespace, connection.profile)
    await Conversation(client, wish, Terminal()).run()
