"""The command that stops a session."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.event_text import call_runs, call_waits
from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, Session
from countersign.agent_client.cli.running import Connection, UsageError, run
from countersign.agent_client.cli.terminal import print_json, styled
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.stopping import StopReport
    from countersign.agent_client.waiting_calls import PendingCall, WaitingCall


def stop(
    session: Session,
    *,
    close: Annotated[bool, typer.Option("--close", help="End an open session too.")] = False,
    terminate: Annotated[
        bool, typer.Option("--terminate", help="Last resort: end it at once, abandon running tools. Needs no worker.")
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option(help="Why, for the history, never encrypted; goes with --terminate.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Stop a session's turn gracefully.

    Tools that run come to their end first, and a call that waits for a worker of its tool's own queue
    gets one or waits its time out; open questions are withdrawn. An open session takes
    further prompts afterwards, unless --close ends it.
    """

    def tell(calls: "list[WaitingCall]") -> None:
        for call in calls:
            print(f"{call_waits(call.as_json(), datetime.now(UTC))}; the stop takes effect then", file=sys.stderr)
        abandon = command("stop", session, "--terminate")
        print(f"a worker that comes before runs it; to abandon it: {abandon}", file=sys.stderr)

    def tell_running(calls: "list[PendingCall]") -> None:
        for call in calls:
            runs = call_runs(call.as_json(), datetime.now(UTC))
            print(f"{runs}; the stop takes effect when it has ended", file=sys.stderr)

    async def work(client: "AgentClient") -> "StopReport":
        if reason is not None and not terminate:
            raise UsageError("--reason goes with --terminate; leave it out, or give both")
        from countersign.agent_client.stopping import stop_session, terminate_session

        handle = client.session(session)
        if terminate:
            return await terminate_session(handle, reason or "countersign stop --terminate")
        if as_json:
            return await handle.stop_and_wait(close=close)
        return await stop_session(handle, close=close, tell=tell, tell_running=tell_running)

    report = run(Connection(address, namespace, profile), as_json, work, "waiting until it has stopped …")
    if as_json:
        print_json({"session_id": session, **asdict(report)})
    else:
        print("\n".join(_told(session, report, terminate)))


def _told(session: str, report: "StopReport", terminated: bool) -> list[str]:
    """What happened, in lines."""
    name = visible(session)
    if report.outcome == "ended":
        return [f"session {name} had ended already ({visible(report.status)}); nothing to stop"]
    if report.outcome == "idle":
        closed = report.ended is not None
        lines = [
            f"closed session {name}, which ran nothing" if closed else f"session {name} ran nothing; nothing to stop"
        ]
    elif report.stop_reason in ("cancelled", None):
        lines = [f"{'terminated' if terminated else 'stopped'} session {name}"]
    else:
        lines = [f"session {name} was done before the stop took hold ({visible(report.stop_reason)})"]
    lines += [f"  withdrawn: {visible(_withdrawn(item))}" for item in report.withdrawn]
    lines += [f"  ran to its end: {visible(tool)}" for tool in report.ran_on]
    lines += [f"  never started: {visible(tool)}, which no worker took in time" for tool in report.never_started]
    lines += [f"  may have run, nobody knows: {visible(tool)}" for tool in report.unknown]
    lines += [
        f"  was running: {visible(tool)}; it may go on and finish, nobody records it" for tool in report.abandoned
    ]
    lines += [f"  no worker had begun: {visible(tool)}" for tool in report.not_begun]
    lines.append(f"  now: {styled(visible(report.status), report.status)}")
    if report.ended is None:
        lines.append(f"  it takes further prompts; to end it: {command('stop', session, '--close')}")
    return lines


def _withdrawn(question: dict[str, Any]) -> str:
    """A question that is not asked any more; of a call whose outcome nobody knows, what that means."""
    told = f"{question['name']} ({question['id']})"
    tools = ", ".join(map(str, question["tools"])) or "its call"
    if question["call"] == "may have run":
        return f"{told}: {tools} may have run, and nobody is asked any more; look where it leaves its mark"
    return f"{told}: {tools} has not run, and nobody is asked any more" if question["call"] else told
