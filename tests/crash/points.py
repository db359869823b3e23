"""Points at which a worker process can be made to die, and the traps that kill it there.

The server learns of a worker only by what the worker sends: completed workflow activations, heartbeats and
completed activities. So a process that dies just before and just after each of these has died, as far as any
history can tell, between every two events that a worker causes; events that clients and timers cause lie
between the sending of one completion and the handling of the next activation, which are points too. `POINTS` has
their names.
"""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.bridge.worker import Worker as Bridge

from countersign.activities import mark as mark_room

POINTS = """\
    activation handled W   decided, and not sent
    activation sent W      the server has it
    activity received A    not begun
    activity marked A      the server knows that the tool is about to run
    body began L           inside the tool, before its transaction
    body committed L       inside the tool, after it
    step began L           inside a durable step
    activity ended A       the result is there, and not sent
    activity reported A    the server has it

W is "session" or "cycle-<n>", A an activity's type, L a label. Points of one name are numbered, for instance
"activity marked pay #2".
"""


@dataclass(frozen=True)
class Trap:
    """Where to kill what.

    Attributes:
        at: The point's name; None to kill nothing.
        flag: A file that says that the trap has gone off; it does so once.
        record: Where to write the points that were met, a line each; None for nowhere.
        victim: The process to kill; this one if None.
    """

    at: str | None
    flag: Path
    record: Path | None = None
    victim: int | None = None


_trap: list[Trap] = []
_met: Counter[str] = Counter()
_lock = threading.Lock()


def hit(kind: str, subject: str) -> None:
    """A point: die here if the trap says so."""
    if not _trap:
        return
    trap = _trap[0]
    with _lock:
        _met[f"{kind} {subject}"] += 1
        name = f"{kind} {subject} #{_met[f'{kind} {subject}']}"
        if trap.record is not None:
            with trap.record.open("a") as file:
                file.write(f"{name}\n")
        if name == trap.at and not trap.flag.exists():
            trap.flag.touch()
            os.kill(trap.victim or os.getpid(), signal.SIGKILL)
            while trap.victim is None:
                time.sleep(1)


def set_trap(trap: Trap) -> None:
    """Make this process, which is about to become a worker, meet points."""
    _trap.append(trap)
    _watch_activations()
    _watch_activities()
    _watch_marks()


Call = Callable[..., Awaitable[Any]]


def _watch_activations() -> None:
    poll: Call = Bridge.poll_workflow_activation
    complete: Call = Bridge.complete_workflow_activation
    subjects: dict[str, str] = {}
    silent: set[str] = set()

    async def polled(self: Bridge) -> Any:
        activation = await poll(self)
        kinds = [job.WhichOneof("variant") for job in activation.jobs]
        for job in activation.jobs:
            if job.HasField("initialize_workflow"):
                found = job.initialize_workflow
                is_cycle = found.workflow_type == "AgentCycle"
                subjects[activation.run_id] = found.workflow_id.rpartition("/")[2] if is_cycle else "session"
        # Queries and evictions change nothing, and how many there are is chance.
        (silent.add if set(kinds) <= {"query_workflow", "remove_from_cache"} else silent.discard)(activation.run_id)
        return activation

    async def completed(self: Bridge, completion: Any) -> None:
        counts = completion.run_id not in silent
        subject = subjects.get(completion.run_id, "unknown")
        if counts:
            hit("activation handled", subject)
        await complete(self, completion)
        if counts:
            hit("activation sent", subject)

    Bridge.poll_workflow_activation = polled  # type: ignore[method-assign]  # to hit points
    Bridge.complete_workflow_activation = completed  # type: ignore[method-assign]  # to hit points


def _watch_activities() -> None:
    poll: Call = Bridge.poll_activity_task
    complete: Call = Bridge.complete_activity_task
    kinds: dict[bytes, str] = {}

    async def polled(self: Bridge) -> Any:
        task = await poll(self)
        if task.HasField("start"):
            kinds[task.task_token] = task.start.activity_type
            hit("activity received", task.start.activity_type)
        return task

    async def completed(self: Bridge, completion: Any) -> None:
        kind = kinds.pop(completion.task_token, "unknown")
        hit("activity ended", kind)
        await complete(self, completion)
        hit("activity reported", kind)

    Bridge.poll_activity_task = polled  # type: ignore[method-assign]  # to hit points
    Bridge.complete_activity_task = completed  # type: ignore[method-assign]  # to hit points


def _watch_marks() -> None:
    leave_mark = mark_room.leave_mark

    async def marked() -> None:
        await leave_mark()
        hit("activity marked", activity.info().activity_type)

    mark_room.leave_mark = marked
