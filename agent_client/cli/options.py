"""Arguments and options that commands share, and how they are read."""

import re
import sys
from datetime import timedelta
from typing import Annotated, TypeAlias

import typer

from countersign.agent_client.cli.completing import session_ids

_CONNECTION = "Connection"

Address: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar="TEMPORAL_ADDRESS", help="Temporal server, host:port.", rich_help_panel=_CONNECTION, show_default=False
    ),
]
Namespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar="TEMPORAL_NAMESPACE", help="Temporal namespace.", rich_help_panel=_CONNECTION, show_default=False
    ),
]
Profile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        envvar="TEMPORAL_PROFILE",
        help="Profile of Temporal's settings file (address, TLS, API key).",
        rich_help_panel=_CONNECTION,
        show_default=False,
    ),
]
TaskQueue: TypeAlias = Annotated[
    str, typer.Option(envvar="COUNTERSIGN_TASK_QUEUE", help="Task queue of the agents' workers; may hold {agent}.")
]
Agent: TypeAlias = Annotated[str | None, typer.Option(help="Only sessions of this agent.", show_default=False)]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

Session: TypeAlias = Annotated[
    str,
    typer.Argument(help="The session's id.", metavar="SESSION", show_default=False, autocompletion=session_ids),
]
SessionOrAll: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        help="Only this session, in full.", metavar="SESSION", show_default=False, autocompletion=session_ids
    ),
]
OneOfTheInterrupts: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        help="The question's id; may be left out if one question is open.", metavar="INTERRUPT_ID", show_default=False
    ),
]
Comment: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="For the audit trail; the model does not see it.",
        show_default=False,
    ),
]
Who: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as", envvar="COUNTERSIGN_USER", help="Who answers (a claim, recorded as such).", show_default=False
    ),
]
Digest: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Refuse unless the question is still the one with this digest (16 or more digits).", show_default=False
    ),
]


def text_of(given: str) -> str:
    """A prompt as it was given; "-" stands for standard input, without its last line break."""
    return sys.stdin.read().removesuffix("\n") if given == "-" else given


_LONGEST_S = 36_525 * 86_400


def duration(text: str) -> timedelta:
    """A duration like "45m", "3h" or "2d".

    Raises:
        typer.BadParameter: If it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip().lower())
    seconds = float(match[1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[match[2]] if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise typer.BadParameter(
            f"{text!r:.100} is no duration; use a number with s, m, h or d, like 2d, and no more than 100 years"
        )
    return timedelta(seconds=seconds)
