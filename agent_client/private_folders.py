"""Folders that nobody but this user may write: what lies in one is as good as this user's word."""

import os
import stat
from pathlib import Path


def state_folder() -> Path:
    """Where this user's programs keep state: `$XDG_STATE_HOME`, or `~/.local/state`.

    Raises:
        RuntimeError: If there is none of them.
    """
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise RuntimeError("this user has no home folder; set XDG_STATE_HOME or HOME, or name a folder") from error


def private_folder(folder: Path) -> Path:
    """A folder that only this user can write into; made if it is not there, then for this user's eyes only.

    Returns:
        Its path without links.

    Raises:
        PermissionError: If it belongs to somebody else, others may write into it, or they may put another in its place.
        OSError: If it can't be made.
    """
    for part in reversed([folder, *folder.parents]):
        if not part.exists():
            part.mkdir(mode=0o700, exist_ok=True)
    found = folder.resolve()
    _check(found, found.stat())
    for above in found.parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise PermissionError(
                f"anybody may replace {found}, because anybody may write into {above}; chmod o-w that, or use another"
            )
    return found


def read_private(file: Path) -> str:
    """A file's text, if nobody but this user may have written it.

    Raises:
        PermissionError: If it belongs to somebody else, or others may write it.
        OSError: If it can't be read, or is a link.
    """
    with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="utf-8") as opened:
        _check(file, os.fstat(opened.fileno()))
        return opened.read()


def _check(path: Path, info: os.stat_result) -> None:
    if info.st_uid != os.geteuid():
        raise PermissionError(
            f"{path} belongs to the user {info.st_uid} and not to this one ({os.geteuid()}), so it can't be trusted; "
            "use a folder of this user's own, or chown it if its content is known"
        )
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write {path} (mode {stat.S_IMODE(info.st_mode):o}), so it can't be trusted; look at what is "
            "in it and chmod go-w it, or use another one"
        )
