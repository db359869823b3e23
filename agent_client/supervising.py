"""Keeps a worker process running: relays what it says, replaces it when told, restarts it when it dies."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from countersign.agent_client.dev_server import leashed
from countersign.agent_client.errors import ClientError
from countersign.agent_client.sending import backoff_s
from countersign.agent_core.wire import WORKER_READY

CANNOT_SERVE = 2
"""Exit code of a worker whose agents or settings are at fault: the same again would end the same."""

_STEADY_S = 30.0
"""A worker that lived so long was well: when it dies, the pauses begin anew."""

_LONGEST_LINE_BYTES = 16_384
_NOTICE_S = 1.0


@dataclass(frozen=True)
class Listener:
    """Who hears of a worker.

    Attributes:
        said: A line that the worker wrote; foreign text.
        notice: Something that happened to the worker, in words.
        ready: The worker serves these agents; it has said so, too.
    """

    said: Callable[[str], None]
    notice: Callable[[str], None]
    ready: Callable[[list[str]], None]


class Supervisor:
    """Runs one worker at a time.

    Args:
        command: The worker's command line.
        environment: Its environment variables.
        listener: Who hears of it.
        reload: True if `change` will be called: a worker that can't serve then waits for that.
        retry_s: With `reload`, try again after so many seconds even without a change; None for never.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: dict[str, str],
        listener: Listener,
        *,
        reload: bool,
        retry_s: float | None = None,
    ) -> None:
        self._command, self._environment, self._listener = command, environment, listener
        self._reload, self._retry_s = reload, retry_s
        self._changed, self._hurry = asyncio.Event(), asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._was_ready = False

    @property
    def pid(self) -> int | None:
        """Process id of the running worker."""
        return self._process.pid if self._process is not None else None

    def change(self) -> None:
        """Replace the worker: its source has changed."""
        self._changed.set()

    def hurry(self) -> None:
        """Kill a worker that is being stopped."""
        self._hurry.set()

    async def run(self) -> None:
        """Keep a worker running until this is cancelled, which stops it gracefully.

        Raises:
            ClientError: If it can't serve and no change of its source will be told.
        """
        try:
            await self._keep_running()
        finally:
            if self._process is not None:  # it was being replaced
                await self._stop(self._process)

    async def _keep_running(self) -> None:
        loop = asyncio.get_running_loop()
        pauses = backoff_s(0.5, 30.0)
        while True:
            self._changed.clear()
            began_s = loop.time()
            code = await self._serve_once()
            if code is None:
                pauses = backoff_s(0.5, 30.0)
            elif code == CANNOT_SERVE and not self._was_ready:
                await self._wait_for_a_change()
            else:
                if loop.time() - began_s > _STEADY_S:
                    pauses = backoff_s(0.5, 30.0)
                pause_s = next(pauses)
                self._listener.notice(f"the worker {_end(code)}; starting a new one in {pause_s:g} s")
                await self._change_within(pause_s)

    async def _wait_for_a_change(self) -> None:
        if not self._reload:
            raise ClientError("the worker can't serve these agents, for the reason above; correct it and start again")
        hope = f"; trying again in {self._retry_s:g} s" if self._retry_s is not None else ""
        self._listener.notice("no worker runs now: waiting for a change" + hope)
        await self._change_within(self._retry_s)

    async def _change_within(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)

    async def _serve_once(self) -> int | None:
        """Run one worker; returns its exit code, or None if it was stopped because of a change."""
        self._was_ready = False
        process, output = await self._start()
        relaying = asyncio.ensure_future(self._relay(output))
        ending, changing = asyncio.ensure_future(process.wait()), asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({ending, changing}, return_when=asyncio.FIRST_COMPLETED)
            return process.returncode if ending.done() else None
        finally:
            changing.cancel()
            await self._stop(process)
            await asyncio.wait({relaying}, timeout=_NOTICE_S)  # its last words; a child of its own may hold the pipe
            relaying.cancel()
            self._process = None

    async def _start(self) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader]:
        # A pipe of our own: asyncio's would not let us see the end of a worker whose children hold it.
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *leashed(*self._command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                env=self._environment,
                start_new_session=True,  # Ctrl-C reaches this process only, which then stops the worker in order
            )
        finally:
            os.close(writing)
        output = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb")
        )
        return self._process, output

    async def _relay(self, output: asyncio.StreamReader) -> None:
        async for line in _lines(output):
            text = line.decode(errors="replace").rstrip("\r")
            self._listener.said(text)
            if text.startswith(WORKER_READY):
                self._was_ready = True
                self._listener.ready(text.removeprefix(WORKER_READY).split("; ")[0].split(", "))

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """Stop it: running tools get the worker's own grace period, unless somebody is in a hurry."""
        ending = asyncio.ensure_future(process.wait())
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({ending}, timeout=_NOTICE_S)
        if ending.done():
            return
        self._listener.notice("the worker lets running tools finish (Ctrl-C twice kills it)")
        hurrying = asyncio.ensure_future(self._hurry.wait())
        either: list[asyncio.Future[Any]] = [ending, hurrying]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        hurrying.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await ending


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines, however long; a very long one in pieces."""
    rest = b""
    while chunk := await stream.read(_LONGEST_LINE_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > _LONGEST_LINE_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest


def _end(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"
