"""The command `doctor`: says what works, what does not, and what to do."""

import asyncio
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, AsJson, Namespace, Profile, TaskQueue
from countersign.agent_client.cli.running import FAILED, UNREACHABLE, leaving
from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.diagnosis import Check

_MARKS = {"ok": "✓", "warning": "!", "failure": "✗"}
_STYLES = {"ok": "green", "warning": "yellow", "failure": "red"}
_NAME_WIDTH = 24


def doctor(
    context: typer.Context,
    *,
    task_queue: TaskQueue = DEFAULT_TASK_QUEUE,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE",
            envvar="COUNTERSIGN_AGENTS",
            help="Also import this agent module, in a process of its own.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Check settings, server, namespace, workers and agents.

    Changes nothing. Exit code 0 if nothing failed (warnings count as fine), 1 if something did, 3
    if the server can't be reached.
    """
    connection = {"address": address, "namespace": namespace, "profile": profile}
    sources = {name: (value, _source(context, name)) for name, value in connection.items()}
    modules = [name.strip() for item in agents or [] for name in item.split(",") if name.strip()]
    with leaving(as_json):
        checks = asyncio.run(_examined(sources, task_queue, modules))
    if as_json:
        from countersign.agent_client.diagnosis import overall

        print_json({"status": overall(checks), "checks": [asdict(check) for check in checks]})
    else:
        _print(checks)
    raise typer.Exit(_exit_code(checks))


async def _examined(sources: dict[str, tuple[str | None, str]], task_queue: str, modules: list[str]) -> "list[Check]":
    from countersign.agent_client.diagnosis import Check, settings_check
    from countersign.agent_client.errors import ClientError
    from countersign.agent_client.examining import examine, settings_of, versions_check
    from countersign.agent_client.loading import agents_check
    from countersign.agent_client.payloads import data_converter
    from countersign.agent_client.payloads.errors import PayloadSettingsError

    checks = [versions_check()]
    try:
        settings = settings_check(settings_of(sources))
        data_converter()
    except PayloadSettingsError as error:
        advice = "correct it: sessions are read with the keys and stores that their workers have"
        return [*checks, Check("settings", "failure", str(error), advice)]
    except ClientError as error:
        advice = "correct the file, or check --profile and TEMPORAL_CONFIG_FILE"
        return [*checks, Check("settings", "failure", str(error), advice, code="no-connection")]
    checks.append(settings)
    agents: list[str] = []
    if modules:
        loaded = await agents_check(modules)
        checks.append(loaded)
        agents = loaded.found.split(", ") if loaded.level == "ok" else []
    address, namespace, profile = (sources[name][0] for name in ("address", "namespace", "profile"))
    return checks + await examine(address, namespace, profile, task_queue, agents)


def _source(context: typer.Context, name: str) -> str:
    """Whether a value came by its flag or by its variable."""
    source = context.get_parameter_source(name)
    return f"TEMPORAL_{name.upper()}" if source is not None and source.name == "ENVIRONMENT" else f"--{name}"


def _print(checks: "list[Check]") -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, emoji=False, soft_wrap=True)
    for check, following in zip_longest(checks, checks[1:]):
        line = Text(f"{_MARKS[check.level]} ", style=_STYLES[check.level])
        console.print(line.append(f"{check.name:<{_NAME_WIDTH}}", style="bold").append(visible(check.found), style=""))
        if check.advice and (following is None or following.advice != check.advice):  # once for both
            console.print(Text(f"  {'':<{_NAME_WIDTH}}→ {visible(check.advice)}"))


def _exit_code(checks: "list[Check]") -> int:
    if any(check.code == "no-connection" for check in checks):
        return UNREACHABLE
    return FAILED if any(check.level == "failure" for check in checks) else 0
