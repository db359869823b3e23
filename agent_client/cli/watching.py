"""The command that watches: one session's events, or all sessions as they run and wait."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.event_text import call_runs, event_text
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.options import Address, Agent, Namespace, Profile, SessionOrAll
from countersign.agent_client.cli.running import FAILED, Connection, UsageError, run
from countersign.agent_client.cli.tables import SESSION_TITLES, console, questions_in_short, session_row, table
from countersign.agent_client.cli.terminal import columns, print_json_line, rows, styled
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.fleet import FleetView
    from countersign.agent_client.listing import SessionSummary

_FAILED = ("failed", "terminated", "timed_out", "canceled")


def watch(
    session: SessionOrAll = None,
    *,
    until_question: Annotated[
        bool, typer.Option("--until-question", help="Leave when SESSION asks something, too.")
    ] = False,
    tail: Annotated[int, typer.Option(min=0, help="Messages of SESSION so far to begin with.")] = 10,
    agent: Agent = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object on a line for each event.")] = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Watch what runs and waits, or follow one SESSION.

    A session's messages, questions and answers are shown as they come, to its end. Leaves with 0 then,
    with 1 if it failed, and with 130 on Ctrl-C. A worker that is away is waited for. Long texts
    and results are cut; --json has all.
    """
    connection = Connection(address, namespace, profile)

    async def work(client: "AgentClient") -> int:
        if session is None:
            if until_question:
                raise UsageError("--until-question needs SESSION; name one")
            await _fleet(client, agent, as_json)
            return 0
        return await _follow(client, session, until_question, tail, as_json)

    code = run(connection, as_json, work, None)
    if code:
        raise SystemExit(code)


async def _follow(client: "AgentClient", session: str, until_question: bool, tail: int, as_json: bool) -> int:
    """Print a session's events; the exit code."""
    transcript = Transcript()
    async for event in client.session(session).follow(tail):
        if as_json:
            print_json_line(event.as_json())
        else:
            out = sys.stderr if event.kind in ("away", "back") else sys.stdout
            print(event_text(session, event, transcript, datetime.now(UTC), columns()), file=out, flush=True)
            if event.kind == "status" and event.detail["status"] == "running":
                await _print_tools(client, session)
        if event.kind == "ended":
            return FAILED if event.detail["status"] in _FAILED else 0
        if until_question and event.kind == "status" and event.detail["status"] == "waiting":
            return 0  # its questions came just before
    return 0


async def _print_tools(client: "AgentClient", session: str) -> None:
    """The tools that run at the moment; those that wait for a worker are an event of their own."""
    from countersign.agent_client.errors import ClientError

    try:
        calls, _ = await client.session(session).calls()
    except ClientError:
        return  # following it says what is wrong, and waits
    for call in calls:
        if call.kind == "tool" and call.state == "running":
            print(rows(f"* {call_runs(call.as_json(), datetime.now(UTC))}", columns()), flush=True)


async def _fleet(client: "AgentClient", agent: str | None, as_json: bool) -> None:
    if sys.stdout.isatty() and not as_json:
        await _live_table(client, agent)
        return
    trouble, left_out = "", False
    async for view in client.watch(agent):
        if view.left_out and not left_out:
            print(f"only the newest {len(view.sessions)} sessions are watched; see also --agent", file=sys.stderr)
        left_out = view.left_out
        if view.trouble and not trouble:
            print(visible(view.trouble), file=sys.stderr)
        trouble = view.trouble
        for session in view.changes:
            if as_json:
                print_json_line({"event": "session", **session.as_json()})
            else:
                print(_change_line(session), flush=True)


def _change_line(session: "SessionSummary") -> str:
    names = visible(questions_in_short(session))
    asks = f": {names}" if names else ""
    return (
        f"{datetime.now(UTC):%H:%M:%S} {visible(session.session_id)} ({visible(session.agent or '?')}) "
        f"{styled(visible(session.status), session.status)}{asks}"
    )


async def _live_table(client: "AgentClient", agent: str | None) -> None:
    from rich.live import Live

    screen = console()
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        async for view in client.watch(agent):
            live.update(_table(view, screen.height - 4), refresh=True)


def _table(view: "FleetView", rows: int) -> "RenderableType":
    """What waits, then what runs, as many as fit."""
    from rich.console import Group
    from rich.text import Text

    now = datetime.now(UTC)
    ordered = sorted(view.sessions, key=lambda session: session.status != "waiting")
    shown = ordered[: max(1, rows)]
    waiting = sum(session.status == "waiting" for session in ordered)
    plus = "+" if view.left_out else ""
    head = f"{len(ordered)}{plus} sessions, {waiting} waiting for an answer   {now:%H:%M:%S} UTC   Ctrl-C leaves"
    unseen = len(ordered) - len(shown)
    more = f"{unseen}{plus} more; see: {command('list')}"
    foot = more if unseen or plus else f"to answer: {command('interrupts', 'SESSION')}"
    body = table(SESSION_TITLES[:-1], [session_row(session, now)[:-1] for session in shown])
    trouble = [Text(visible(view.trouble), style="red")] if view.trouble else []
    return Group(Text(head, style="bold"), *trouble, body, Text(foot, style="dim"))
