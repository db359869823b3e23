"""Which source files agents are made of, and when they change. Imports none of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from countersign.agent_client.errors import ClientError
from countersign.agent_core.extras import how_to_install

_DEBOUNCE_MS, _QUIET_MS = 1_000, 100
"""Changes count as one until it has been quiet for so long, but at most for the first of the two."""


@dataclass(frozen=True)
class Source:
    """A folder whose Python files are watched.

    Attributes:
        folder: The folder.
        deep: Whether its subfolders belong to it.
    """

    folder: Path
    deep: bool


def sources_of(modules: Sequence[str]) -> list[Source]:
    """The folders to watch: a package with all that is in it, or the files beside a single module.

    Args:
        modules: Agent modules by their dotted names; looked for as an import would, but not imported.

    Raises:
        ClientError: If the package or module is not there.
    """
    found: dict[Source, None] = {}
    for module in modules:
        root = module.split(".")[0]
        spec = find_spec(root)
        if spec is None:
            raise ClientError(
                f"agent module {module!r} can't be found: there is no {root!r} in {Path.cwd()} nor among the installed "
                "packages; change to the folder that it can be imported from"
            )
        if spec.submodule_search_locations is not None:
            found.update({Source(Path(folder).resolve(), True): None for folder in spec.submodule_search_locations})
        elif spec.origin is not None:
            found[Source(Path(spec.origin).resolve().parent, False)] = None
    return list(found)


async def watch(sources: Sequence[Source], changed: Callable[[set[Path]], None]) -> None:
    """Tell of changed Python files, many at once as one change; runs until it is cancelled.

    Args:
        sources: What to watch.
        changed: Called with the files that were written, added or deleted.

    Raises:
        ClientError: If watchfiles is not installed.
    """
    async with asyncio.TaskGroup() as group:
        for source in sources:
            group.create_task(_watch_one(source, changed))


async def _watch_one(source: Source, changed: Callable[[set[Path]], None]) -> None:
    async for paths in _changes(source):
        changed(paths)


async def _changes(source: Source) -> AsyncIterator[set[Path]]:
    from watchfiles import PythonFilter, awatch

    stop = asyncio.Event()
    try:
        async for changes in awatch(
            source.folder,
            watch_filter=PythonFilter(),
            debounce=_DEBOUNCE_MS,
            step=_QUIET_MS,
            recursive=source.deep,
            stop_event=stop,
        ):
            yield {Path(path) for _, path in changes}
    finally:
        stop.set()  # a thread of its own waits for changes


def check_watcher() -> None:
    """Check that files can be watched.

    Raises:
        ClientError: If watchfiles is not installed, with how to get it.
    """
    try:
        import watchfiles  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise ClientError(
            f"watchfiles is not installed; give --no-reload, or {how_to_install('dev-server')}"
        ) from error
