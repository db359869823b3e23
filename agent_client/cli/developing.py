"""The command `dev`: a Temporal dev server, a worker that reloads, and what to type next."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countersign.agent_client.cli.dev_plan import PORT, UI_PORT, Plan, announce, say, worker_environment
from countersign.agent_client.cli.options import AsJson, TaskQueue
from countersign.agent_client.cli.running import UsageError, leaving
from countersign.agent_client.cli.terminal import BAR
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.dev_server import DevServer
    from countersign.agent_client.reloading import Source
    from countersign.agent_client.supervising import Supervisor

_RETRY_S = 30.0
"""Pause before a worker that can't serve tries again, if the server is not ours: that may be the cause."""


def _port(text: str) -> Any:
    return typer.Option(metavar="PORT", min=1, max=65_535, help=text, show_default=False)


def dev(
    agents: Annotated[
        list[str],
        typer.Option(
            metavar="MODULE",
            envvar="COUNTERSIGN_AGENTS",
            help="Module that registers agents, like my_agents; repeat it or use commas.",
            show_default=False,
        ),
    ],
    *,
    port: Annotated[int | None, _port(f"Port of the server; {PORT} if not given.")] = None,
    ui_port: Annotated[int | None, _port(f"Port of the Temporal UI; {UI_PORT} if not given.")] = None,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="Run without the Temporal UI.")] = False,
    database: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Keep sessions in this file; else they end with this command."
        ),
    ] = None,
    no_reload: Annotated[bool, typer.Option("--no-reload", help="Don't restart the worker on changes.")] = False,
    task_queue: TaskQueue = DEFAULT_TASK_QUEUE,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Use this running server instead.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run everything for development: server, UI, and a worker that reloads.

    The worker restarts when a Python file of the agents' packages changes; tools that run get to
    finish first. Sessions that wait for an answer are not touched by that. Ctrl-C ends it all, and
    once more kills a worker whose tools don't finish. With --json, one object on standard output
    says when everything is ready, and all else goes to standard error.
    """
    with leaving(as_json):
        embedded_only = {"--port": port, "--ui-port": ui_port, "--database": database, "--no-ui": no_ui or None}
        given = [name for name, value in embedded_only.items() if value is not None]
        modules = _checked(agents, address, given)
        ui = None if no_ui or address is not None else ui_port or UI_PORT
        with _store(address, database) as store:
            plan = Plan(modules, task_queue, address, port or PORT, ui, database, store, not no_reload, as_json)
            asyncio.run(_until_stopped(plan))


@contextlib.contextmanager
def _store(address: str | None, database: Path | None) -> Iterator[Path | None]:
    """A folder for large values: beside the database, or one that ends with this command.

    None with a server of somebody else's, or if the environment says where they go.
    """
    if address is not None or "COUNTERSIGN_STORAGE" in os.environ:
        yield None
    elif database is not None:
        yield Path(f"{database.absolute()}.values")
    else:
        with tempfile.TemporaryDirectory(prefix="countersign-dev-") as folder:
            yield Path(folder)


def _checked(agents: list[str], address: str | None, embedded_only: list[str]) -> list[str]:
    """The agents' modules, if what was asked for can be done.

    Args:
        agents: As given, with commas.
        address: Of a running server, if one was given.
        embedded_only: The options given that are for the embedded server.

    Raises:
        UsageError: If it can't.
    """
    if address is not None and embedded_only:
        raise UsageError(
            f"{' and '.join(embedded_only)}: only for the embedded server; leave it out, or leave out --address"
        )
    if "--no-ui" in embedded_only and "--ui-port" in embedded_only:
        raise UsageError("--no-ui and --ui-port contradict each other; leave one out")
    modules = [name.strip() for item in agents for name in item.split(",") if name.strip()]
    if not modules:
        raise UsageError("--agents names no module; give one like --agents examples.janitor")
    return modules


async def _until_stopped(plan: Plan) -> None:
    """Run the plan until a signal or a failure; leave when all of its processes are gone."""
    from countersign.agent_client.reloading import check_watcher, sources_of

    sys.path.insert(0, os.getcwd())  # as the worker does
    if plan.reload:
        check_watcher()
    supervisor = _supervisor(plan, sources := sources_of(plan.agents))
    running = asyncio.ensure_future(_run(plan, supervisor, sources))
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if stopped:
            supervisor.hurry()
        else:
            stopped = running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await running
    except asyncio.CancelledError:
        if not stopped:
            raise
        say(plan, "stopped")
    except ExceptionGroup as group:  # tasks run beside each other; the first that failed says why
        first: Exception = group
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        raise first from group


async def _run(plan: Plan, supervisor: "Supervisor", sources: "list[Source]") -> None:
    from countersign.agent_client.connection import connect_temporal
    from countersign.agent_client.dev_server import DevServer
    from countersign.agent_client.reloading import watch

    server = None
    try:
        if plan.address is None:
            _check_ports(plan)
            server = DevServer(
                ui=plan.ui_port is not None, ui_port=plan.ui_port, port=plan.port, database=plan.database, leash=True
            )
            say(plan, "starting Temporal's dev server …")
            await server.start()
        else:
            await connect_temporal(plan.address)
        say(plan, "starting a worker …")
        async with asyncio.TaskGroup() as group:
            if plan.reload:
                group.create_task(watch(sources, lambda files: _reload(plan, supervisor, files)))
            if server is not None:
                group.create_task(_report_end(server))
            group.create_task(supervisor.run())
    finally:
        if server is not None:
            await server.stop()


def _reload(plan: Plan, supervisor: "Supervisor", files: set[Path]) -> None:
    names = sorted(os.path.relpath(file) for file in files)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    say(plan, f"changed: {shown}; restarting the worker")
    supervisor.change()


async def _report_end(server: "DevServer") -> None:
    from countersign.agent_client.errors import ConnectionFailedError

    code = await server.ended()
    raise ConnectionFailedError(f"the dev server has ended (code {code}); start again: countersign dev")


def _check_ports(plan: Plan) -> None:
    """Refuse ports that are taken, with the way out.

    Raises:
        ConnectionFailedError: Naming the port.
    """
    from countersign.agent_client.dev_server import is_free
    from countersign.agent_client.errors import ConnectionFailedError

    if not is_free(plan.port):
        raise ConnectionFailedError(
            f"port {plan.port} is in use. If a Temporal server runs there: --address 127.0.0.1:{plan.port}; "
            f"else take another port: --port {plan.port + 10}"
        )
    if plan.ui_port is not None and not is_free(plan.ui_port):
        raise ConnectionFailedError(
            f"port {plan.ui_port}, for the Temporal UI, is in use; take another: --ui-port {plan.ui_port + 10}, "
            "or do without: --no-ui"
        )


def _supervisor(plan: Plan, sources: "list[Source]") -> "Supervisor":
    from countersign.agent_client.supervising import Listener, Supervisor

    modules = [word for module in plan.agents for word in ("--agents", module)]
    worker = [sys.executable, "-m", "countersign.worker", *modules]
    worker += ["--address", plan.connect_to, "--task-queue", plan.task_queue]
    announced = False

    def ready(served: list[str]) -> None:
        nonlocal announced
        if not announced:
            announced = True
            announce(plan, served, sources, supervisor.pid)

    listener = Listener(
        lambda line: say(plan, visible(line.expandtabs()), f"worker {BAR}"), lambda text: say(plan, text), ready
    )
    retry_s = None if plan.address is None else _RETRY_S
    environment = worker_environment(plan, os.environ)
    supervisor = Supervisor(worker, environment, listener, reload=plan.reload, retry_s=retry_s)  # `ready` looks at it
    return supervisor
