"""What `dev` is asked to run, and what it says about it."""

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from countersign.agent_client.cli.terminal import print_json
from countersign.agent_client.shell import DEFAULT_TASK_QUEUE, command, leading_to
from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from countersign.agent_client.reloading import Source

PORT, UI_PORT = 7233, 8233
_INLINE_KB = 1_900
"""What clients read stays in the server as long as it takes it, so that no other terminal needs to know the folder."""


@dataclass(frozen=True)
class Plan:
    """What `dev` is asked to run.

    Attributes:
        agents: Agent modules.
        task_queue: The queue that the worker serves.
        address: A server that runs already; None for an embedded one.
        port: Of the embedded server.
        ui_port: Of its UI; None for no UI.
        database: Its file; None for memory.
        store: Folder for values that are too large for the server; None to leave that to the settings.
        reload: Whether the worker is replaced when its source changes.
        as_json: Whether standard output is for programs.
    """

    agents: list[str]
    task_queue: str
    address: str | None
    port: int
    ui_port: int | None
    database: Path | None
    store: Path | None
    reload: bool
    as_json: bool

    @property
    def storage(self) -> dict[str, str]:
        """The worker's settings for large values, if they are ours to make."""
        if self.store is None:
            return {}
        return {"COUNTERSIGN_STORAGE": self.store.as_uri(), "COUNTERSIGN_STORAGE_SHARED_FROM_KB": str(_INLINE_KB)}

    @property
    def connect_to(self) -> str:
        """Address of the server, embedded or not."""
        return self.address or f"127.0.0.1:{self.port}"


def worker_environment(plan: Plan, given: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment variables: those given, without what would make another worker of it than is announced.

    Args:
        plan: What `dev` was asked to run.
        given: The environment of `dev`.
    """
    others: tuple[str, ...] = ("COUNTERSIGN_QUEUE_PER_AGENT", "COUNTERSIGN_TOOLS_ONLY")
    if plan.address is None:  # settings for another server: namespace, TLS, API key, a versioned build
        others += ("TEMPORAL_", "COUNTERSIGN_NAMESPACE", "COUNTERSIGN_PROFILE")
        others += ("COUNTERSIGN_DEPLOYMENT_NAME", "COUNTERSIGN_BUILD_ID")
    kept = {name: value for name, value in given.items() if not name.startswith(others)}
    kept["PYTHONUNBUFFERED"] = "1"
    return kept if plan.address is not None else {**kept, "TEMPORAL_CONFIG_FILE": os.devnull, **plan.storage}


def announce(plan: Plan, served: list[str], sources: "list[Source]", worker_pid: int | None) -> None:
    """Say what is ready, and what to type next."""
    ui = f"http://127.0.0.1:{plan.ui_port}" if plan.ui_port is not None else None
    if plan.as_json:
        database = str(plan.database) if plan.database is not None else None
        print_json(
            {
                "address": plan.connect_to,
                "ui": ui,
                "task_queue": plan.task_queue,
                "agents": served,
                "database": database,
                "worker_pid": worker_pid,
            }
        )
        sys.stdout.flush()
        return
    kept = f"in {plan.database}" if plan.database else "in memory: what it holds ends with it; --database FILE keeps it"
    folders = ", ".join(f"{os.path.relpath(source.folder)}/" for source in sources)
    rows = {
        "agents": ", ".join(served),
        "server": f"{plan.connect_to}" + (f" ({kept})" if plan.address is None else ""),
        "UI": ui,
        "queue": plan.task_queue if plan.task_queue != DEFAULT_TASK_QUEUE else None,
        "worker": f"process {worker_pid}",
        "reloads": f"on changes in {folders}" if plan.reload else "no (--no-reload)",
    }
    lines = [f"  {name:<8} {visible(value)}" for name, value in rows.items() if value]
    with leading_to(_way_there(plan)):
        following = command("chat", served[0])
    say(plan, "\n".join(["ready", *lines, "", "in another terminal:", f"  {following}", "", "Ctrl-C stops it all"]))


def _way_there(plan: Plan) -> list[str]:
    """Flags that another terminal needs to find this server and queue; none with the defaults."""
    from countersign.agent_client.connection import way_there

    flags = way_there(plan.connect_to, "default" if plan.address is None else None, None)
    return flags + (["--task-queue", plan.task_queue] if plan.task_queue != DEFAULT_TASK_QUEUE else [])


def say(plan: Plan, text: str, before: str = "") -> None:
    """A line for the person, at once."""
    with contextlib.suppress(
        OSError
    ):  # the terminal or the pipe's reader has gone; the processes are still to be ended
        print(before + text, file=sys.stderr if plan.as_json else sys.stdout, flush=True)
