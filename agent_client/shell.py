"""Commands that a message proposes: they can be pasted into a shell, whatever the ids in them are. Pure."""

import shlex

from countersign.agent_core.visible import visible

DEFAULT_TASK_QUEUE = "countersign"
"""The queue of workers and sessions that name none."""


def command(*words: str) -> str:
    """A `countersign` command; the words come out of a shell as they went in, if visible."""
    return " ".join(["countersign", *map(word, words)])


def word(text: str) -> str:
    """A text as one word of a shell, with nothing hidden in it."""
    return shlex.quote(visible(text))


def how_to_start(task_queue: str) -> str:
    """How to start a worker for a task queue."""
    flag = "" if task_queue == DEFAULT_TASK_QUEUE else f" --task-queue {word(task_queue)}"
    return (
        f"start one with: python -m countersign.worker --agents MODULE{flag} "
        f"(or, to develop: {command('dev')} --agents MODULE{flag})"
    )


def how_to_run_tools(task_queue: str) -> str:
    """How to start a worker for the tools of a queue of their own."""
    return f"start one with: python -m countersign.worker --tools-only --task-queue {word(task_queue)} --agents MODULE"
