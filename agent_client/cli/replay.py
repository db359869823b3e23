"""The command `replay`: what would break if the code in this folder were deployed now."""

import asyncio
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countersign.agent_client.cli.options import Address, Agent, AsJson, Namespace, Profile, TaskQueue
from countersign.agent_client.cli.running import FAILED, Connection, UsageError, leaving, run
from countersign.agent_client.cli.terminal import print_json, styled
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE, command
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.client import AgentClient
    from countersign.agent_client.replaying import Rehearsal, Replayed

_NOT_TOLD = "what hooks and handlers will decide; one that gives another reason or input asks again"
_TITLES = ("workflow", "agent", "events", "on this code")


@dataclass(frozen=True)
class _Wanted:
    """What to replay."""

    modules: list[str]
    sessions: list[str]
    agent: str | None
    files: list[Path]
    queue: str
    limit: int


@dataclass
class _Found:
    """What came of it."""

    replayed: "list[Replayed]"
    left_out: bool = False


def replay(
    *,
    agents: Annotated[
        list[str],
        typer.Option(
            metavar="MODULE",
            envvar="COUNTERSIGN_AGENTS",
            help="Agent module, as for a worker; may be repeated, or use commas.",
            show_default=False,
        ),
    ],
    session: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this session; may be repeated.", show_default=False),
    ] = None,
    agent: Agent = None,
    history: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A history as `temporal workflow show --output json` writes it; needs no server; may be repeated.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many sessions, the newest first.")] = 200,
    task_queue: TaskQueue = DEFAULT_TASK_QUEUE,
    as_json: AsJson = False,
    address: Address = None,
    namespace: Namespace = None,
    profile: Profile = None,
) -> None:
    """Say what would break if the code in this folder were deployed.

    Replays the open sessions of a task queue, and their cycles, on this code, and looks whether it
    still has the agents and tools that they wait for. Changes nothing and runs no tool. The hooks and
    handlers that will judge next are not run: it can't tell what they decide. Exit code 1 if something
    would break.
    """
    modules = [name.strip() for item in agents for name in item.split(",") if name.strip()]
    wanted = _Wanted(modules, session or [], agent, history or [], task_queue, limit)
    sys.path.insert(0, os.getcwd())
    for name in ("temporalio", "countersign"):  # what a replay meets is reported, not logged
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Of a workflow whose arguments can't be decoded: Temporal has made its coroutine by then.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    with _progress() as tell:
        found = _found(wanted, Connection(address, namespace, profile), as_json, tell)
    breaks = any(one.breaks for one in found.replayed)
    if as_json:
        shown = [{**asdict(one), "breaks": one.breaks} for one in found.replayed]
        print_json(
            {
                "status": "breaks" if breaks else "ok",
                "replayed": shown,
                "left_out": found.left_out,
                "not_told": _NOT_TOLD,
            }
        )
    else:
        _print(wanted, found)
    raise typer.Exit(FAILED if breaks else 0)


def _found(wanted: _Wanted, connection: Connection, as_json: bool, tell: Callable[[int], None]) -> _Found:
    if wanted.files and not wanted.sessions and wanted.agent is None:
        with leaving(as_json):
            return asyncio.run(_from_files(wanted, tell))

    async def work(client: "AgentClient") -> _Found:
        return await _from_server(client, wanted, tell)

    return run(connection, as_json, work, None)


async def _from_files(wanted: _Wanted, tell: Callable[[int], None]) -> _Found:
    from countersign.agent_client.replaying import Rehearsal

    return _Found(await _files(Rehearsal(_modules(wanted)), wanted, tell))


async def _files(rehearsal: "Rehearsal", wanted: _Wanted, tell: Callable[[int], None]) -> "list[Replayed]":
    from countersign.agent_client.replay_histories import read_history

    replayed: list[Replayed] = []
    for file in wanted.files:
        replayed.append(await rehearsal.replay(read_history(file)))
        tell(len(replayed))
    return replayed


async def _from_server(client: "AgentClient", wanted: _Wanted, tell: Callable[[int], None]) -> _Found:
    from countersign.agent_client.replaying import Rehearsal, with_cycles

    temporal = client.temporal
    rehearsal = Rehearsal(_modules(wanted), namespace=temporal.namespace)
    found = _Found(await _files(rehearsal, wanted, tell))
    count = 0
    async for session_id in _ids(client, wanted):
        if count == wanted.limit:
            found.left_out = True
            break
        count += 1
        async for one in with_cycles(temporal, rehearsal, session_id):
            found.replayed.append(one)
            tell(len(found.replayed))
    return found


def _modules(wanted: _Wanted) -> list[str]:
    if not wanted.modules:
        raise UsageError("--agents names no module; give the ones that the worker gets")
    return wanted.modules


async def _ids(client: "AgentClient", wanted: _Wanted) -> AsyncIterator[str]:
    """The sessions that were named, or all open ones of the queue."""
    from countersign.agent_client.listing import LIVE_STATUSES
    from countersign.agent_client.queues import queue_of

    for session_id in dict.fromkeys(wanted.sessions):
        yield session_id
    if not wanted.sessions:
        async for session in client.sessions(wanted.agent, statuses=LIVE_STATUSES):
            if session.task_queue == queue_of(wanted.queue, session.agent):
                yield session.session_id


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """On a terminal, how many were replayed so far."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("loading the agents …") as status:
        yield lambda count: status.update(f"replayed {count} …")


def _print(wanted: _Wanted, found: _Found) -> None:
    from countersign.agent_client.cli.tables import print_table
    from countersign.agent_client.replay_causes import causes

    if not found.replayed:
        print(f"no open session on task queue {visible(wanted.queue)!r}; others: --task-queue, --session or --history")
        return
    ordered = sorted(found.replayed, key=lambda one: (not one.breaks, not one.findings))
    print_table(_TITLES, [_row(one) for one in ordered])
    for cause in causes((one.workflow_id, finding) for one in ordered for finding in one.findings):
        finding = cause.finding
        mark = styled("✗", "failed") if finding.level == "breaks" else styled("!", "waiting")
        print(f"\n{mark} {visible(cause.where)}: {visible(finding.what)}")
        if finding.advice:
            print(f"  → {visible(finding.advice)}")
    broken = sum(one.breaks for one in found.replayed)
    print(f"\n{len(found.replayed)} replayed: {f'{broken} would break' if broken else 'nothing would break'}")
    print(f"not told: {_NOT_TOLD}")
    if found.left_out:
        print(f"there are more open sessions; see them with: {command('replay')} … --limit {wanted.limit * 5}")


def _row(one: "Replayed") -> list[tuple[str, str]]:
    word = "breaks" if one.breaks else "pinned" if not one.events else "goes on"
    return [
        (one.workflow_id, ""),
        (one.agent, ""),
        (str(one.events or ""), "dim"),
        (word, "failed" if one.breaks else ""),
    ]
