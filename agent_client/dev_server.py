"""Starts Temporal's own dev server as a child process, tuned for fast local runs."""

import asyncio
import contextlib
import os
import shutil
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from countersign.agent_client.errors import ConnectionFailedError
from countersign.agent_core.extras import how_to_install

SETTINGS: Mapping[str, str] = {
    # Without it, every hop between two tasks waits some 50 ms.
    "history.transferProcessorMaxPollRPS": "100000",
    # Else timers, retries and deadlines come up to a second late: room for clocks of several hosts that differ.
    "history.timerProcessorMaxTimeShift": '"1ms"',
    # Else a run that continues as new is held back until a second after its predecessor's start.
    "history.workflowIdReuseMinimalInterval": '"0s"',
}
"""The server's dynamic configuration; `python -m benchmarks.server_settings` measures what each entry buys."""

READY_S = 30.0
_LEASH = Path(__file__).with_name("leash.py")


def temporal_binary() -> str:
    """Path of the `temporal` command: the one installed beside Python, else the first on PATH.

    Raises:
        ConnectionFailedError: If there is none, with how to get it.
    """
    beside = Path(sysconfig.get_path("scripts"), "temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise ConnectionFailedError(f"the `temporal` command is not installed; {how_to_install('dev-server')}")
    return found


def leashed(*command: str) -> list[str]:
    """The command, so that it ends when this process does, even by SIGKILL (on Linux).

    To be started from the main thread: the end of the thread that starts it counts as well.
    """
    return [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), *command]


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """True if nobody listens on that loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that just ended does not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _words(said: IO[bytes]) -> str:
    """The end of what the server wrote."""
    said.seek(0)
    return said.read().decode(errors="replace").strip()[-500:]


class DevServer:
    """A dev server on loopback; use it as an async context manager.

    Args:
        ui: Whether to serve the Temporal UI.
        database: A file to keep everything in; memory if None.
        port: Port of the server; a free one if None. Keep it to restart with the same address.
        ui_port: Port of the UI; a free one if None.
        leash: Whether the server ends with this process even if that is killed; see `leashed`.
        codec_endpoint: URL that the UI sends payloads to, to get them readable.
        settings: The server's dynamic configuration, by key; values are JSON.

    Attributes:
        address: "host:port" for clients.
        ui_url: Address of the Temporal UI, or None.
    """

    def __init__(
        self,
        *,
        ui: bool = False,
        database: Path | None = None,
        port: int | None = None,
        ui_port: int | None = None,
        leash: bool = False,
        codec_endpoint: str | None = None,
        settings: Mapping[str, str] = SETTINGS,
    ) -> None:
        self.address = f"127.0.0.1:{port or free_port()}"
        self._ui_port = (ui_port or free_port()) if ui else None
        self._leash = leash
        self._codec_endpoint = codec_endpoint
        self._settings = [f"{key}={value}" for key, value in settings.items()]
        self.ui_url = f"http://127.0.0.1:{self._ui_port}" if ui else None
        self._database = database
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The server's process id.

        Raises:
            RuntimeError: If it does not run.
        """
        if self._process is None:
            raise RuntimeError("the dev server does not run; await start() first")
        return self._process.pid

    async def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            ConnectionFailedError: If its port is taken, or it ends or does not answer in time, with what it said.
        """
        host, port = self.address.split(":")
        for taken in filter(None, (int(port), self._ui_port)):
            # The server itself does not complain, and whoever owns the port would answer in its place.
            if not is_free(taken):
                raise ConnectionFailedError(
                    f"port {taken} is in use already; stop what listens there, or choose another"
                )
        arguments = ["server", "start-dev", "--ip", host, "--port", port, "--log-level", "error"]
        arguments += [word for one in self._settings for word in ("--dynamic-config-value", one)]
        arguments += ["--ui-port", str(self._ui_port)] if self._ui_port else ["--headless"]
        if self._codec_endpoint is not None:
            arguments += ["--ui-codec-endpoint", self._codec_endpoint]
        if self._database is not None:
            arguments += ["--db-filename", str(self._database)]
        command = [temporal_binary(), *arguments]
        with tempfile.TemporaryFile() as said:
            self._process = await asyncio.create_subprocess_exec(
                *(leashed(*command) if self._leash else command), stdout=said, stderr=said, start_new_session=True
            )
            await self._until_it_answers(self._process, said)

    async def _until_it_answers(self, process: asyncio.subprocess.Process, said: IO[bytes]) -> None:
        try:
            async with asyncio.timeout(READY_S):
                while not await self._answers():
                    if process.returncode is not None:
                        raise ConnectionFailedError(
                            f"the dev server ended with code {process.returncode} at once: {_words(said)}"
                        )
                    await asyncio.sleep(0.05)
        except TimeoutError:
            await self.stop()
            words = _words(said) or "it said nothing"
            raise ConnectionFailedError(
                f"the dev server at {self.address} did not answer within {READY_S:g} s: {words}"
            ) from None

    async def _answers(self) -> bool:
        try:
            client = await Client.connect(self.address, data_converter=pydantic_data_converter)
            async for _ in client.list_workflows("WorkflowType = 'none'", limit=1):
                pass
        except Exception:
            return False
        return True

    async def ended(self) -> int:
        """Wait until the server's process ends; returns its exit code."""
        if self._process is None:
            raise RuntimeError("the dev server has not been started; await start() first")
        return await self._process.wait()

    async def stop(self, *, kill: bool = False) -> None:
        """Stop the server; `kill` gives it no time."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
            await process.wait()

    async def __aenter__(self) -> "DevServer":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
