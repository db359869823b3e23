"""Commands that a message proposes: they can be pasted into a shell, whatever the ids in them are."""

import shlex

from countersign.agent_core.visible import visible


def command(*words: str) -> str:
    """A `countersign` command; the words come out of a shell as they went in, if visible."""
    return " ".join(["countersign", *map(word, words)])


def word(text: str) -> str:
    """A text as one word of a shell, with nothing hidden in it."""
    return shlex.quote(visible(text))
