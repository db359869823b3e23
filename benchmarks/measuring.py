"""How it is measured: worker processes, their CPU time, and the size of histories."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus

ROOT = Path(__file__).resolve().parent.parent
READY_S = 30.0
VISIBLE_S = 10.0


@dataclass(frozen=True)
class HistorySize:
    """What a session, or the floor's workflow, leaves on the server: all runs of it and of its children."""

    workflows: int
    events: int
    bytes: int


@dataclass(frozen=True)
class Measurement:
    """One run of one way."""

    way: str
    cycles: int
    wall_ms: float
    worker_cpu_ms: float | None
    history: HistorySize

    def as_json(self) -> dict[str, object]:
        """As it is written to the JSON file."""
        return asdict(self)


def cpu_ms(pid: int) -> float | None:
    """CPU time that a process has used so far, all threads, in ms; None where the system can't say.

    On Linux every process has a CPU clock, whose number is made from its id: see
    clock_getcpuclockid(3). It counts nanoseconds, /proc/<pid>/stat only hundredths of a second.
    """
    if sys.platform != "linux":
        return None
    return time.clock_gettime((~pid << 3) | 2) * 1000


async def history_size(client: Client, workflow_id: str) -> HistorySize:
    """Measure an ended workflow with its children, once the server's index shows that it has ended.

    Raises:
        TimeoutError: If the index does not show it.
    """
    async with asyncio.timeout(VISIBLE_S):
        while True:
            query = f"WorkflowId = '{workflow_id}' OR ParentWorkflowId = '{workflow_id}'"
            found = [execution async for execution in client.list_workflows(query)]
            running = [item for item in found if item.status == WorkflowExecutionStatus.RUNNING]
            if not running and any(
                item.status == WorkflowExecutionStatus.COMPLETED and item.id == workflow_id for item in found
            ):
                break
            await asyncio.sleep(0.1)
    sizes = [await client.get_workflow_handle(item.id, run_id=item.run_id).describe() for item in found]
    return HistorySize(
        workflows=len(sizes),
        events=sum(size.history_length for size in sizes),
        bytes=sum(size.raw_description.workflow_execution_info.history_size_bytes for size in sizes),
    )


@contextlib.asynccontextmanager
async def worker_process(*arguments: str) -> AsyncIterator[int]:
    """A worker, started as `python <arguments>`: its process id once it says on stderr that it is ready.

    Raises:
        RuntimeError: If it ends at once, with what it said.
        TimeoutError: If it does not get ready.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stderr is not None
    try:
        said = b""
        async with asyncio.timeout(READY_S):
            while b"worker ready" not in said:
                line = await process.stderr.readline()
                if not line:
                    raise RuntimeError(f"the worker `python {' '.join(arguments)}` ended: {said.decode()}")
                said += line
        listening = asyncio.ensure_future(_forward(process.stderr))
        yield process.pid
        listening.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _forward(stream: asyncio.StreamReader) -> None:
    """Show what a worker says while it is measured: a measurement with warnings is suspect."""
    async for line in stream:
        print(line.decode(errors="replace"), end="", file=sys.stderr, flush=True)
