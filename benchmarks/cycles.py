"""What a cycle (a model call and a tool call that take no time) costs: time, CPU of worker and server, history."""

import asyncio
import time
from dataclasses import dataclass

from temporalio.client import Client, WorkflowExecutionStatus

from benchmarks.lab import Lab, new_id
from benchmarks.processes import cpu_ms
from benchmarks.questions import Column, Figures, Question
from benchmarks.ways import OURS, OURS_ONE_EACH, THE_FLOOR, THE_PEER, Way

VISIBLE_S = 10.0


async def measure(lab: Lab, way: Way, cycles: int) -> Figures:
    """Run one session from its start until the client has its result."""
    session_id, worker, server = new_id(), lab.worker(way).pid, lab.server.pid
    worker_before, server_before, began = cpu_ms(worker), cpu_ms(server), time.perf_counter()
    await way.start(lab.client, session_id, cycles)
    await way.result(lab.client, session_id)
    took, worker_after, server_after = time.perf_counter() - began, cpu_ms(worker), cpu_ms(server)
    history = await history_size(lab.client, session_id)
    return {
        "ms": took * 1000 / cycles,
        "worker_ms": (worker_after - worker_before) / cycles,
        "server_ms": (server_after - server_before) / cycles,
        "events": history.events,
        "kilobytes": history.bytes / 1000,
        "workflows": history.workflows,
    }


@dataclass(frozen=True)
class HistorySize:
    """What a session leaves on the server: all runs of its workflow and of its children."""

    workflows: int
    events: int
    bytes: int


async def history_size(client: Client, workflow_id: str) -> HistorySize:
    """Measure an ended workflow with its children, once the server's index shows that it has ended.

    Raises:
        TimeoutError: If the index does not show it.
    """
    query = f"WorkflowId = '{workflow_id}' OR ParentWorkflowId = '{workflow_id}'"
    async with asyncio.timeout(VISIBLE_S):
        while True:
            found = [execution async for execution in client.list_workflows(query)]
            ended = [item for item in found if item.status != WorkflowExecutionStatus.RUNNING]
            if len(ended) == len(found) and any(item.id == workflow_id for item in ended):
                break
            await asyncio.sleep(0.1)
    sizes = [await client.get_workflow_handle(item.id, run_id=item.run_id).describe() for item in found]
    return HistorySize(
        workflows=len(sizes),
        events=sum(size.history_length for size in sizes),
        bytes=sum(size.raw_description.workflow_execution_info.history_size_bytes for size in sizes),
    )


CYCLES = Question(
    name="cycles",
    title="A cycle of a model call and a tool call",
    size="cycles",
    sizes=(10, 50, 200),
    quick_sizes=(10,),
    rounds=5,
    weight=4,
    ways=(OURS, OURS_ONE_EACH, THE_FLOOR, THE_PEER),
    columns=(
        Column("ms", "ms/cycle"),
        Column("worker_ms", "worker CPU ms/cycle"),
        Column("server_ms", "server CPU ms/cycle"),
        Column("events", "events", 0),
        Column("kilobytes", "history KB", 0),
        Column("workflows", "workflows", 0),
    ),
    measure=measure,
    drawn="ms",
)
