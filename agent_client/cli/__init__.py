"""The `countersign` command: start agents, see what waits, answer it.

Commands parse, call the client and print; whatever is decided is decided elsewhere. Temporal's
client is imported when a command connects, so that help comes at once.
"""

import contextlib
import os
import sys

import typer

from countersign.agent_client.cli.answering import approve, deny, respond
from countersign.agent_client.cli.chatting import chat
from countersign.agent_client.cli.developing import dev
from countersign.agent_client.cli.doctor import doctor
from countersign.agent_client.cli.looking import interrupts, show
from countersign.agent_client.cli.starting import start

app = typer.Typer(
    name="countersign",
    help="AI agents whose dangerous calls wait for a person's signature.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would double the time until it shows
)
for entry in (dev, chat, start, interrupts, approve, deny, respond, show, doctor):
    app.command()(entry)


def main() -> None:
    """Entry point of the command."""
    try:
        app()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if "temporalio" not in sys.modules:
        raise SystemExit(code)
    # A thread of Temporal's client that still winds up a request while the interpreter shuts down aborts
    # the process (temporalio 1.35: "PyGILState_Release", 1 in 20 failed connections); so it doesn't shut down.
    with contextlib.suppress(OSError):  # the reader of a pipe has gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
