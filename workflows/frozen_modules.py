"""Serves the modules of policed packages from memory, compiled once at the worker's start.

Each cycle loads them anew; read from disk each time, an edit under a running worker would change
the policy of the next cycle while no deployment has happened.
"""

import importlib.util
import logging
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from countersign.agent_core.errors import AgentDefinitionError

logger = logging.getLogger(__name__)

PROBE = "__countersign_probe__"
"""A module that each policed package gets, for the self-test."""

_PROBE_SOURCE = "import time\n\n\ndef probe():\n    return time.time()\n"


class _Source(NamedTuple):
    code: CodeType
    path: str
    is_package: bool


class FrozenModules(MetaPathFinder, Loader):
    """Import finder and loader for policed packages."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}

    @classmethod
    def install(cls, roots: Sequence[str]) -> None:
        """Compile all modules of these packages and serve them from now on.

        Raises:
            AgentDefinitionError: If a package can't be found.
        """
        found = next((finder for finder in sys.meta_path if isinstance(finder, cls)), None)
        finder = found or cls()
        for root in roots:
            finder._sources = {
                name: source for name, source in finder._sources.items() if name.split(".")[0] != root
            } | dict(_compiled(root))
        if found is None:
            sys.meta_path.insert(0, finder)

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        """See importlib."""
        source = self._sources.get(fullname)
        if source is None:
            return None
        locations = [str(Path(source.path).parent)] if source.is_package else None
        return importlib.util.spec_from_file_location(
            fullname, source.path, loader=self, submodule_search_locations=locations
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """See importlib."""

    def exec_module(self, module: ModuleType) -> None:
        """See importlib."""
        exec(self._sources[module.__name__].code, module.__dict__)


def _compiled(root: str) -> Iterator[tuple[str, _Source]]:
    for finder in sys.meta_path:
        if isinstance(finder, FrozenModules):
            continue
        spec = finder.find_spec(root, None)
        if spec is not None:
            break
    else:
        raise AgentDefinitionError(f"no package or module named {root!r} can be found from here; is it on sys.path?")
    if spec.submodule_search_locations is None:
        if spec.origin is None or not spec.origin.endswith(".py"):
            raise AgentDefinitionError(f"{root!r} is not Python source ({spec.origin}), so it can't be policed")
        yield from _file(root, Path(spec.origin), is_package=False)
        return
    for location in spec.submodule_search_locations:
        yield from _folder(root, Path(location))


def _folder(name: str, folder: Path) -> Iterator[tuple[str, _Source]]:
    """The modules of a package's folder, subpackages included."""
    yield f"{name}.{PROBE}", _Source(compile(_PROBE_SOURCE, PROBE, "exec"), str(folder / f"{PROBE}.py"), False)
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" and path.stem.isidentifier():
            is_init = path.name == "__init__.py"
            yield from _file(name if is_init else f"{name}.{path.stem}", path, is_package=is_init)
        elif path.is_dir() and path.name.isidentifier() and path.name != "__pycache__":
            yield from _folder(f"{name}.{path.name}", path)


def _file(name: str, path: Path, *, is_package: bool) -> Iterator[tuple[str, _Source]]:
    try:
        yield name, _Source(compile(path.read_bytes(), str(path), "exec"), str(path), is_package)
    except SyntaxError as error:
        # Not every file of a package needs to be importable; whoever imports this one gets the error.
        logger.warning("%s can't be compiled: %s", path, error)
