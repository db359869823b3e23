"""Command lines that a text proposes: they can be pasted into a shell, whatever the ids in them are. Pure."""

import shlex
from collections.abc import Sequence

from countersign.agent_core.visible import visible


def word(text: str) -> str:
    """A text as one word of a shell, with nothing hidden in it."""
    return shlex.quote(visible(text))


def command_line(words: Sequence[str], there: Sequence[str] = ()) -> str:
    """A `countersign` command; the words come out of a shell as they went in, if visible.

    Args:
        words: The command's.
        there: Flags of the connection; they go before a "--", which ends the options.
    """
    options = words.index("--") if "--" in words else len(words)
    return " ".join(["countersign", *map(word, [*words[:options], *there, *words[options:]])])


def in_namespace(namespace: str) -> list[str]:
    """The flags for whoever connects to the server anyway, and perhaps to another namespace."""
    return [] if namespace == "default" else ["--namespace", namespace]
