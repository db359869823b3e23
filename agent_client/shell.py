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


def how_to_start(task_queue: str, deployment: str = "", build_id: str = "") -> str:
    """How to start a worker for a task queue.

    Args:
        task_queue: The queue.
        deployment: The worker deployment that the queue belongs to; a worker without it would get no work.
        build_id: Its current build.
    """
    flag = "" if task_queue == DEFAULT_TASK_QUEUE else f" --task-queue {word(task_queue)}"
    start = f"start one with: python -m countersign.worker --agents MODULE{flag}"
    if deployment:
        return f"{start} {version_flags(deployment, build_id)}"
    return f"{start} (or, to develop: {command('dev')} --agents MODULE{flag})"


def version_flags(deployment: str, build_id: str) -> str:
    """A build, as the worker and Temporal's command take it."""
    return f"--deployment-name {word(deployment)} --build-id {word(build_id)}"


def how_to_promote(namespace: str, deployment: str, build_id: str) -> str:
    """How to make a build the current one of its deployment."""
    flags = f"-n {word(namespace)} {version_flags(deployment, build_id)} --yes"
    return f"temporal worker deployment set-current-version {flags}"


def how_to_run_tools(task_queue: str, deployment: str = "", build_id: str = "") -> str:
    """How to start a worker for the tools of a queue of their own; of a build, if only that one gets them."""
    flags = f" {version_flags(deployment, build_id)}" if deployment else ""
    queue = word(task_queue)
    return f"start one with: python -m countersign.worker --tools-only --task-queue {queue} --agents MODULE{flags}"
