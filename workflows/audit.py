"""Watches what third-party code does inside a hook: files, sockets, processes.

The sandbox sees what policy modules themselves call. A library that passes through can still open
a file; Python's audit events show it. They don't show the clock, chance or the environment.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_watched: ContextVar[bool] = ContextVar("countersign_watched", default=False)

_FORBIDDEN = frozenset(
    {
        "open",
        "os.listdir",
        "os.scandir",
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "subprocess.Popen",
        "socket.__new__",
        "socket.connect",
        "socket.getaddrinfo",
        "sqlite3.connect",
        "urllib.Request",
    }
)

_EXEMPT = frozenset(
    {"importlib", "linecache", "traceback", "tokenize", "warnings", "logging", "zoneinfo", "inspect", "temporalio"}
)
"""Modules whose own file access is not the policy's: imports, error reports, logs, time zones."""

_installed: list[bool] = []


class ForbiddenCall(Exception):
    """Library code did what a hook must not do.

    Attributes:
        call: The audit event, for instance "socket.connect".
    """

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(f"{call} inside a hook or handler")


@contextmanager
def watch() -> Iterator[None]:
    """Watch the user code that runs inside this block."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_on_event)
    token = _watched.set(True)
    try:
        yield
    finally:
        _watched.reset(token)


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if event not in _FORBIDDEN or not _watched.get():
        return
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.split(".", maxsplit=1)[0] in _EXEMPT or module.startswith("_frozen_importlib"):
            return
        if module == "countersign.workflows.guard" or module.startswith("countersign.agent_core.cycle"):
            break
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    raise ForbiddenCall(event)
