"""The command that lists sessions."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, Agent, AsJson, Namespace, Profile
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.tables import SESSION_TITLES, print_table, say_what_is_unreadable, session_row
from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.shell import command

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.listing import SessionSummary


def list_sessions(
    agent: Agent = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="Only sessions that are running, waiting, idle, closed, failed, canceled, terminated or timed_out; "
            "may be repeated.",
            metavar="STATUS",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """List sessions, running and ended, the newest first.

    Those that go on stand first, then those that have ended. Needs no worker.
    """

    async def work(client: "AgentClient") -> "list[SessionSummary]":
        # One more than is shown, to know whether there are more.
        return [found async for found in client.sessions(agent, statuses=status or (), limit=limit + 1)]

    found = run(Connection(address, namespace, profile), as_json, work, "reading the list …")
    shown = found[:limit]
    if as_json:
        print_json([session.as_json() for session in shown])
        return
    if not shown:
        print(f"no such session; start one with: {command('start', 'AGENT', 'PROMPT')}")
        return
    now = datetime.now(UTC)
    print_table(SESSION_TITLES, [session_row(session, now) for session in shown])
    say_what_is_unreadable(shown)
    if len(found) > limit:
        print(f"\nthere are more; see them with: {command('list', '--limit', str(limit * 5))}")
