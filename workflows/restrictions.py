"""What policy code must not call: Temporal's own list, and what it leaves open.

Temporal restricts names; some calls are harmless or not by their arguments (`Random(7)` is the same
in every run, `Random()` is not), and its list leaves out `gmtime`, `os.stat`, `io.open` and others.
"""

import concurrent.futures
import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from temporalio.worker.workflow_sandbox import SandboxMatcher, SandboxRestrictions
from temporalio.worker.workflow_sandbox._restrictions import RestrictionContext, _RestrictedProxy

# Python loads these two on first use and keeps them in its module. First used in a workflow, it would keep Temporal's
# proxy, and every executor of the process would be a proxy from then on.
_LOADED_HERE = (concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor)

_SHOWS_ERRORS = frozenset({"linecache", "traceback", "tokenize", "inspect", "warnings"})
"""Modules that look at source files to show an error; from Python 3.13 on they import `os` when called."""

_PURE_IN_OS = frozenset({"fspath", "fsencode", "fsdecode", "strerror", "path"})

_TOUCHES_DISK = frozenset(
    "exists lexists isfile isdir islink ismount isjunction isdevdrive samefile sameopenfile realpath abspath relpath "
    "getsize getmtime getatime getctime expanduser expandvars".split()
)
"""Functions of os.path that look at the disk, the environment or the working folder."""


@dataclass(frozen=True)
class _CallMatcher(SandboxMatcher):
    """Forbids some calls of one function or class, by their arguments and by who calls.

    Temporal asks about "__call__" without telling the arguments, so they are read from its frame;
    a frame that looks otherwise counts as forbidden.
    """

    forbids: Callable[[str, tuple[Any, ...], Mapping[str, Any]], bool] = lambda caller, args, kwargs: True

    def access_matcher(
        self, context: RestrictionContext, *child_path: str, include_use: bool = False
    ) -> SandboxMatcher | None:
        """See `SandboxMatcher`."""
        if child_path != ("__call__",):
            return None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _RestrictedProxy.__call__.__code__:
            frame = frame.f_back
        if frame is None or frame.f_back is None:
            return SandboxMatcher.all
        caller = str(frame.f_back.f_globals.get("__name__"))
        known = frame.f_locals
        return SandboxMatcher.all if self.forbids(caller, known["args"], known["kwargs"]) else None


def _fewer_arguments_than(count: int) -> _CallMatcher:
    """Forbids calls that leave out the last argument, or give None: they read the clock or the system's chance."""
    return _CallMatcher(
        forbids=lambda _, args, kwargs: (
            len(args) + len(kwargs) < count or any(value is None for value in (*args, *kwargs.values()))
        )
    )


_BY_CALLER = _CallMatcher(forbids=lambda caller, args, kwargs: caller not in _SHOWS_ERRORS)


def _functions_of_os() -> set[str]:
    return {
        name
        for name in dir(os)
        if not name.startswith("__")
        and name not in _PURE_IN_OS | {"stat"}
        and callable(getattr(os, name))
        and not isinstance(getattr(os, name), type)
    }


def _members() -> SandboxMatcher:
    default = SandboxRestrictions.invalid_module_members_default
    known = default.children
    paths = SandboxMatcher(use=set(_TOUCHES_DISK), only_runtime=True)
    extended = {
        # The clock and ids also at the top of a module: it is loaded anew in every run, and in every replay.
        "time": SandboxMatcher(
            use=known["time"].use | {"clock_gettime", "clock_gettime_ns", "ctime", "gmtime"},
            children={"asctime": _fewer_arguments_than(1), "strftime": _fewer_arguments_than(2)},
        ),
        "uuid": SandboxMatcher(use={"uuid1", "uuid4", "uuid6", "uuid7", "getnode"}),
        "random": SandboxMatcher(
            use=known["random"].use | {"SystemRandom"}, children={"Random": _fewer_arguments_than(1)}
        ),
        # By name and not "*", which would also forbid os.path.join. `environ` raises when it is reached for:
        # Temporal's proxy lets `in` and iteration through.
        "os": SandboxMatcher(
            access={"environ", "environb"},
            use=_functions_of_os(),
            children={"path": paths, "stat": _BY_CALLER},
            only_runtime=True,
        ),
        "posixpath": paths,
        "ntpath": paths,
        "genericpath": paths,
        "io": SandboxMatcher(use={"open", "open_code", "FileIO"}, only_runtime=True),
        "sqlite3": SandboxMatcher(use={"connect"}),
        "asyncio": dataclasses.replace(
            known["asyncio"],
            use={"to_thread", "run", "create_subprocess_exec", "create_subprocess_shell", "open_connection"}
            | {"open_unix_connection", "start_server", "start_unix_server"},
        ),
    }
    return dataclasses.replace(default, children={**known, **extended})


FORBIDDEN_MEMBERS = _members()
"""The restrictions of policed modules."""

LOADED_FIRST = ("time", "random", "secrets", "uuid", "datetime", "os", "os.path")
"""Modules that a run loads before policy code, so that `sys.modules` holds them restricted.

Not all: the standard library looks into `sys.modules` too (logging for multiprocessing, say) and would trip.
"""
