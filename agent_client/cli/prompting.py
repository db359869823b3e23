"""The command that sends an open session a further prompt."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, Session, text_of
from countersign.agent_client.cli.outcome import print_outcome
from countersign.agent_client.cli.running import Connection, UsageError, run
from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.shell import command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.settling import Outcome


def prompt(
    session: Session,
    text: Annotated[
        str,
        typer.Argument(help='What to do next; "-" reads it from standard input.', metavar="PROMPT", show_default=False),
    ],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it asks, or is done.")] = False,
    update_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="With --wait: an id of this prompt; sent again with the same, it runs once.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Send an open session a further prompt.

    It is queued if a turn runs; it is refused while questions are open.
    """
    content = text_of(text)

    async def work(client: "AgentClient") -> "tuple[Outcome | None, str | None]":
        from countersign.agent_client.queueing import send_prompt
        from countersign.agent_client.settling import outcome_of

        if update_id is not None and not wait:
            raise UsageError("--update-id needs --wait: a prompt that is only queued has no id")
        handle = client.session(session)
        if wait:
            await handle.status()  # without a worker, that is said at once, and nothing is sent
            return outcome_of(await handle.invoke(content, update_id=update_id)), None
        warning = await send_prompt(handle, content)
        if warning is not None and not as_json:
            print(visible(warning), file=sys.stderr)
        return None, warning

    outcome, warning = run(Connection(address, namespace, profile), as_json, work)
    if outcome is not None:
        print_outcome(session, outcome, as_json)
    elif as_json:
        print_json({"session_id": session, "queued": warning is None, "warning": warning})
    else:
        print("queued" if warning is None else "sent")
        print(f"to follow it: {command('watch', session)}", file=sys.stderr)
