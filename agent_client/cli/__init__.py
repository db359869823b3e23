"""The `countersign` command: start agents, see what waits, answer it.

Commands parse, call the client and print; what there is to decide of a session, `agent_client`
decides. Temporal's client is imported when a command connects, so that help comes at once.
The signature of a command is the list of its options: that is why some are long.
"""

import contextlib
import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from countersign import __version__
from countersign.agent_client.cli.answering import approve, deny, respond
from countersign.agent_client.cli.chatting import chat
from countersign.agent_client.cli.developing import dev
from countersign.agent_client.cli.doctor import doctor
from countersign.agent_client.cli.listing import list_sessions
from countersign.agent_client.cli.looking import interrupts
from countersign.agent_client.cli.prompting import prompt
from countersign.agent_client.cli.replay import replay
from countersign.agent_client.cli.showing import show
from countersign.agent_client.cli.starting import start
from countersign.agent_client.cli.stopping import stop
from countersign.agent_client.cli.watching import watch
from countersign.agent_client.shell import leading_to

app = typer.Typer(
    name="countersign",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would double the time until it shows
)

COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "dev": (dev, ("dev --agents examples.janitor", "dev --agents my_agents --database sessions.db")),
    "chat": (chat, ("chat janitor", "chat --session janitor-0123456789 --as ana")),
    "start": (start, ('start janitor "Delete files older than 5 days in /tmp/attic" --wait',)),
    "list": (list_sessions, ("list", "list --status waiting --agent janitor")),
    "watch": (watch, ("watch", "watch tidy --until-question")),
    "interrupts": (interrupts, ("interrupts", "interrupts tidy")),
    "approve": (approve, ("approve tidy", "approve tidy int-3-0-54c53eb2e914763f --digest c42a9f27b0a79319 --as ana")),
    "deny": (deny, ('deny tidy --reason "keep the logs of May"',)),
    "respond": (respond, ("respond tidy t", "respond tidy '{\"go\": true}' --json-value")),
    "prompt": (prompt, ('prompt tidy "And now /tmp/cellar" --wait',)),
    "show": (show, ("show tidy",)),
    "stop": (stop, ("stop tidy", 'stop tidy --terminate --reason "it hangs"')),
    "doctor": (doctor, ("doctor", "doctor --agents examples.janitor")),
    "replay": (replay, ("replay --agents my_agents", "replay --agents my_agents --session tidy")),
}
"""Every command, by use, with what one would type."""


def _leading_there(entry: Callable[..., None]) -> Callable[..., None]:
    """The command; those that it proposes connect to where it connects itself."""

    @functools.wraps(entry)
    def command(**given: Any) -> None:
        connection = [given.get(name) for name in ("address", "namespace", "profile")]
        with leading_to(_way_there(*connection) if any(connection) else ()):
            entry(**given)

    return command


def _way_there(address: str | None, namespace: str | None, profile: str | None) -> list[str]:
    from countersign.agent_client.connection import way_there

    return way_there(address, namespace, profile)


for word, (entry, lines) in COMMANDS.items():
    # \b: click keeps the lines of such a paragraph as they are.
    epilog = "\n".join(["\b", "Examples:", *(f"  countersign {line}" for line in lines)])
    app.command(word, epilog=epilog)(_leading_there(entry))


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"countersign {__version__}")
        raise typer.Exit


@app.callback()
def countersign(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """AI agents whose dangerous calls wait for a person's signature.

    Where to connect: --address, or TEMPORAL_ADDRESS and Temporal's profiles; else localhost:7233.
    What workers store or encrypt is read with their COUNTERSIGN_STORAGE and COUNTERSIGN_ENCRYPTION_KEYS.
    Each command explains itself with --help and an example; for programs, add --json.
    """


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows an escape instead of a traceback
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
