"""`strands.vended_interventions.cedar` by our name; and how policies are read from a file."""

import os
from functools import cache

from countersign.agent_core.cedar import CedarAuthorization

__all__ = ["CedarAuthorization", "load_text"]


def load_text(path: str | os.PathLike[str]) -> str:
    """The text of a file, read once in this process: for policies, entities and schemas.

    Call it at the top of an agent module. A worker reads the file when it starts; every cycle then gets
    that text, and a changed file counts from the next start on, like changed code.

    Args:
        path: The file; a relative one is looked up in the working folder, so start from `__file__`.

    Raises:
        OSError: If it can't be read.
    """
    return _read(os.fspath(path))


@cache
def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
