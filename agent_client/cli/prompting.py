"""The command that sends an open session a further prompt."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, Session, text_of
from countersign.agent_client.cli.running import Connection, run
from countersign.agent_client.cli.stops import print_stop, stop_of
from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.cli.stops import Stop
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.session import SessionHandle


def prompt(
    session: Session,
    text: Annotated[
        str,
        typer.Argument(help='What to do next; "-" reads it from standard input.', metavar="PROMPT", show_default=False),
    ],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it asks, or is done.")] = False,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Send an open session a further prompt.

    It is queued if a turn runs; it is refused while questions are open.
    """
    content = text_of(text)

    async def work(client: "AgentClient") -> "Stop | None":
        handle = client.session(session)
        if wait:
            await handle.status()  # without a worker, that is said at once, and nothing is sent
            return stop_of(await handle.invoke(content))
        await _queue(handle, content, as_json)
        return None

    stop = run(Connection(address, namespace, profile), as_json, work)
    if stop is not None:
        print_stop(session, stop, as_json)
    elif as_json:
        print_json({"session_id": session, "queued": True})
    else:
        print("queued")
        print(f"to follow it: {command('watch', session)}", file=sys.stderr)


async def _queue(handle: "SessionHandle", content: str, as_json: bool) -> None:
    """Send the prompt; a session that can be asked is asked first whether it would take it.

    Raises:
        AnswerRefused: It would not.
    """
    from countersign.agent_client.errors import NoWorkerError
    from countersign.agent_core.errors import AnswerRefused

    try:
        status = await handle.status()
    except NoWorkerError as error:
        await handle.prompt(content)
        if not as_json:
            print(visible(f"{error}. The prompt is sent; whether it is taken shows then"), file=sys.stderr)
        return
    if status["ended"] is None and status["lifetime"] == "turn":
        raise AnswerRefused("closed", f"session {handle.id} has one turn only; start one with --open for more")
    if status["status"] == "waiting":
        raise AnswerRefused(
            "interrupted",
            f"session {handle.id} waits for answers, not for a prompt; see: {command('interrupts', handle.id)}",
        )
    await handle.prompt(content)
