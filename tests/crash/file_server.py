"""A Temporal server that keeps everything in a file, so that it can be killed and come back."""

from pathlib import Path

from countersign.agent_client.dev_server import DevServer


class FileServer:
    """A dev server with a database; use it as an async context manager.

    Args:
        folder: For its database.
    """

    def __init__(self, folder: Path) -> None:
        self._server = DevServer(database=folder / "temporal.sqlite", leash=True)

    @property
    def address(self) -> str:
        """Where it listens, before and after."""
        return self._server.address

    @property
    def pid(self) -> int:
        """Its process.

        Raises:
            RuntimeError: If it has not been started.
        """
        if self._server._process is None:
            raise RuntimeError("the server has not been started; await restart() first")
        return self._server._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._server._process is not None and self._server._process.returncode is None

    async def restart(self) -> None:
        """Start it, again if it has died."""
        await self._server.stop(kill=True)
        await self._server.start()

    async def __aenter__(self) -> "FileServer":
        await self.restart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()
