"""Commands that a message proposes. One of ours says once where it connects; what is proposed meanwhile leads there."""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from countersign.agent_core.shell import command_line, word

DEFAULT_TASK_QUEUE = "countersign"
"""The queue of workers and sessions that name none."""


_THERE: ContextVar[Sequence[str]] = ContextVar("there", default=())


@contextlib.contextmanager
def leading_to(flags: Sequence[str]) -> Iterator[None]:
    """Let each command that is proposed meanwhile lead to the server that this one talks to.

    Args:
        flags: Those that connect there, see `connection.way_there`.
    """
    before = _THERE.set(flags)
    try:
        yield
    finally:
        _THERE.reset(before)


def command(*words: str) -> str:
    """A `countersign` command that leads there."""
    return command_line(words, _THERE.get())


def temporal_command(*words: str) -> str:
    """A command of Temporal's own, which has the same flags, that leads there; -n names its namespace anyway."""
    flags = zip(_THERE.get()[::2], _THERE.get()[1::2], strict=True)
    there = [part for flag in flags if not (flag[0] == "--namespace" and "-n" in words) for part in flag]
    return " ".join(["temporal", *map(word, [*words, *there])])


def _there() -> str:
    """The flags for a worker, which has the same."""
    return "".join(f" {word(flag)}" for flag in _THERE.get())


def how_to_start(task_queue: str, deployment: str = "", build_id: str = "") -> str:
    """How to start a worker for a task queue.

    Args:
        task_queue: The queue.
        deployment: The worker deployment that the queue belongs to; a worker without it would get no work.
        build_id: Its current build.
    """
    flag = "" if task_queue == DEFAULT_TASK_QUEUE else f" --task-queue {word(task_queue)}"
    start = f"start one with: python -m countersign.worker --agents MODULE{flag}{_there()}"
    if deployment:
        return f"{start} {version_flags(deployment, build_id)}"
    if _there():
        return start  # what `dev` starts serves its own server
    return f"{start} (or, to develop: countersign dev --agents MODULE{flag})"


def version_flags(deployment: str, build_id: str) -> str:
    """A build, as the worker and Temporal's command take it."""
    return f"--deployment-name {word(deployment)} --build-id {word(build_id)}"


def how_to_promote(namespace: str, deployment: str, build_id: str) -> str:
    """How to make a build the current one of its deployment."""
    build = ["--deployment-name", deployment, "--build-id", build_id]
    return temporal_command("worker", "deployment", "set-current-version", "-n", namespace, *build, "--yes")


def how_to_run_tools(task_queue: str, deployment: str = "", build_id: str = "") -> str:
    """How to start a worker for the tools of a queue of their own; of a build, if only that one gets them."""
    flags = f" {version_flags(deployment, build_id)}" if deployment else ""
    queue = f"--task-queue {word(task_queue)}"
    return f"start one with: python -m countersign.worker --tools-only {queue} --agents MODULE{flags}{_there()}"
