"""Running a command: its connection, its spinner, its errors and its exit code.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no connection, no worker or nothing found, 130 Ctrl-C.
"""

import asyncio
import contextlib
import functools
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from countersign.agent_core.visible import visible

if TYPE_CHECKING:
    from temporalio.runtime import Runtime

    from countersign.agent_client.client import AgentClient

T = TypeVar("T")

FAILED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130

_SPINNER_AFTER_S = 1.0

_ABOUT = ("session_id", "update_id")
"""What an error may be about; programs get it."""


class UsageError(Exception):
    """The command was called in a way that can't be carried out; the message says what to do."""


@dataclass(frozen=True)
class Connection:
    """Where to connect to; None leaves it to TEMPORAL_* variables and Temporal's settings file."""

    address: str | None = None
    namespace: str | None = None
    profile: str | None = None


def run(
    connection: Connection,
    as_json: bool,
    work: "Callable[[AgentClient], Coroutine[Any, Any, T]]",
    spinner: str | None = "waiting for the session …",
) -> T:
    """Connect, do the work, and leave with an exit code and one line on standard error if it fails.

    Args:
        connection: Where to.
        as_json: How an error is told.
        work: What to do.
        spinner: Shown on a terminal while the work goes on; None for work that shows something itself.
    """
    with leaving(as_json):
        return asyncio.run(_connected(connection, work, spinner))


@contextlib.contextmanager
def leaving(as_json: bool) -> Iterator[None]:
    """Leave with an exit code and one line on standard error if what is done here fails as it may; a bug goes on.

    Args:
        as_json: How an error is told.
    """
    silence_engine()
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        _say(error, code, as_json)
        raise SystemExit(code) from None


def silence_engine() -> None:
    """Keep Temporal's core from logging to standard output, across what is printed there; call it before connecting."""
    from temporalio.runtime import Runtime

    Runtime.set_default(_silent_runtime(), error_if_already_set=False)


@functools.cache
def _silent_runtime() -> "Runtime":
    from temporalio.runtime import Runtime, TelemetryConfig

    return Runtime(telemetry=TelemetryConfig(logging=None))


async def _connected(
    connection: Connection, work: "Callable[[AgentClient], Coroutine[Any, Any, T]]", spinner: str | None
) -> T:
    async def connect_and_work() -> T:
        from countersign.agent_client.client import AgentClient

        return await work(await AgentClient.connect(connection.address, connection.namespace, connection.profile))

    return await _with_spinner(connect_and_work(), spinner)


async def _with_spinner(work: Coroutine[Any, Any, T], spinner: str | None) -> T:
    """Await the work; on a terminal, show after a second that it still goes on."""
    if spinner is None or not sys.stderr.isatty():
        return await work
    task: Awaitable[T] = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=_SPINNER_AFTER_S)  # type: ignore[type-var]  # a Future
    if not done:
        from rich.console import Console

        with Console(stderr=True).status(spinner):
            return await task
    return await task


def exit_code(error: Exception) -> int | None:
    """The exit code for an error that is expected; None for a bug."""
    from countersign.agent_client.errors import (
        AccessDeniedError,
        ConnectionFailedError,
        NoReplyError,
        NoWorkerError,
        SessionNotFoundError,
    )
    from countersign.agent_core.errors import CountersignError

    unreachable = (AccessDeniedError, ConnectionFailedError, NoReplyError, NoWorkerError, SessionNotFoundError)
    if isinstance(error, unreachable):
        return UNREACHABLE
    if isinstance(error, (CountersignError, TimeoutError)):
        return FAILED
    if isinstance(error, (UsageError, ValueError, TypeError)):
        return USAGE
    return None


def _say(error: Exception, code: int, as_json: bool) -> None:
    from countersign.agent_client.payloads.errors import PayloadError
    from countersign.agent_client.unreadable import why

    reason, text = getattr(error, "code", None), why(error) if isinstance(error, PayloadError) else str(error)
    if as_json:
        shown = {"type": type(error).__name__, "code": reason, "message": text, "exit_code": code}
        shown |= {name: value for name in _ABOUT if (value := getattr(error, name, None))}
        print(json.dumps({"error": shown}), file=sys.stderr)
    else:
        print(visible(f"error ({reason}): {text}" if reason else f"error: {text}"), file=sys.stderr)
