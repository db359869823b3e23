"""Watches what third-party code does inside a hook: files, sockets, processes.

The sandbox sees what policy modules themselves call. A library that passes through can still open
a file; Python's audit events show it. They don't show the clock, chance, the environment, threads
or `os.stat`.
"""

import os
import sys
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType
from typing import Any

from temporalio.worker.workflow_sandbox import RestrictedWorkflowAccessError

_watched: ContextVar[bool] = ContextVar("countersign_watched", default=False)

_FORBIDDEN = frozenset(
    "open os.listdir os.scandir os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.truncate os.chmod "
    "os.chown os.utime os.chdir os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty os.kill os.putenv "
    "os.unsetenv subprocess.Popen pty.spawn socket.__new__ socket.connect socket.bind socket.sendto "
    "socket.getaddrinfo socket.gethostbyname socket.gethostname sqlite3.connect urllib.Request "
    "ctypes.dlopen".split()
)

_EXEMPT = (
    "importlib._bootstrap",
    "_frozen_importlib",
    "linecache",
    "traceback",
    "tokenize",
    "inspect",
    "warnings",
    "logging",
    "zoneinfo",
    "temporalio.converter",
    "temporalio.exceptions",
)
"""Modules whose own file access is not the policy's: imports, error reports, logs, time zones, failures."""

_TIME_ZONES = tuple(os.path.join(folder, "") for folder in zoneinfo.TZPATH)
"""Time zones are read by C code, which leaves no frame to see."""

_BOUNDARY = ("countersign.workflows", "countersign.agent_core", "temporalio.worker", "asyncio")
"""Who calls user code. What stands further out on the stack did not come from a hook."""

_installed: list[bool] = []


class ForbiddenCall(RestrictedWorkflowAccessError):
    """Library code did what a hook must not do; the sandbox's own error, met by another way.

    Attributes:
        call: The audit event, for instance "socket.connect".
    """

    def __init__(self, call: str) -> None:
        self.call = call
        super().__init__(call, override_message=f"{call} inside a hook or handler")


@contextmanager
def watch() -> Iterator[None]:
    """Watch the user code that runs inside this block, and the tasks it starts.

    Raises:
        ForbiddenCall: From inside the block, where the code reaches for a file, a socket or a process.
    """
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_on_event)
    token = _watched.set(True)
    try:
        yield
    finally:
        # A workflow that leaves the cache is closed from outside of its context.
        with suppress(ValueError):
            _watched.reset(token)


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if event not in _FORBIDDEN or not _watched.get():
        return
    if event == "open" and isinstance(args[0], str) and os.path.normpath(args[0]).startswith(_TIME_ZONES):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if _under(module, _EXEMPT):
            return
        if _under(module, _BOUNDARY):
            break
        frame = frame.f_back
    raise ForbiddenCall(event)


def _under(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith((f"{name}.", f"{name}_")) for name in names)
