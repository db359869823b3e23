"""The soak: many sessions, workers killed at random, operators at work; all must finish, nothing lost or doubled.

python -m tests.crash.soak --help
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer
from tests.crash.histories import failed_tasks, runs_of
from tests.crash.processes import Worker, store_in
from tests.crash.reference import Effects, patiently
from tests.crash.soak_people import Soak, live, met, operate
from tests.crash.soak_plan import plan

from countersign.agent_client.dev_server import DevServer
from countersign.agent_client.payloads import data_converter
from countersign.client import AgentClient
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.session import AgentSession

EXAMINED_AT_ONCE, EXAMINED_S = 8, 120
FLAT = 1.3
"""The steady worker's memory may grow by this factor in the second half of the time."""


@dataclass
class Crew:
    """The workers: the first one is left alone, and shows whether memory stays flat; the others are killed.

    Attributes:
        workers: All of them.
        kills: How many were killed.
        rss: (seconds, megabytes) of the first one.
    """

    workers: list[Worker]
    kills: int = 0
    rss: list[tuple[float, float]] = field(default_factory=list)

    async def kill_at_random(self, soak: Soak, every_s: float) -> None:
        """Kill one after the other, and start it again."""
        while not soak.over and every_s > 0 and len(self.workers) > 1:
            await asyncio.sleep(soak.chance.expovariate(1 / every_s))
            victim = soak.chance.choice(self.workers[1:])
            await victim.kill()
            self.kills += 1
            await victim.start()

    def growth(self) -> float:
        """By which factor the steady worker's memory grew in the second half."""
        half = len(self.rss) // 2
        return self.rss[-1][1] / self.rss[half][1] if half else 1.0


async def tell(soak: Soak, crew: Crew, every_s: float) -> None:
    """Say from time to time how far it is, and how large the workers are."""
    began, told = time.monotonic(), 0
    while True:
        await asyncio.sleep(every_s)
        for fault in soak.faults[told:]:
            print(f"  FAULT {fault[:500]}", flush=True)
        told = len(soak.faults)
        crew.rss.append((time.monotonic() - began, crew.workers[0].rss_mb))
        sizes = ", ".join(f"{worker.rss_mb:.0f}" for worker in crew.workers)
        print(
            f"  {crew.rss[-1][0]:.0f} s: {len(soak.started)} started, {len(soak.finished)} finished, "
            f"{crew.kills} kills, {soak.counts['answers sent']} answers, {len(soak.faults)} faults; "
            f"memory of each worker (RSS): {sizes} MB",
            flush=True,
        )


async def run(options: argparse.Namespace, address: str, folder: Path) -> int:
    """The soak; returns the number of faults."""
    print(
        f"{options.sessions} sessions over {options.minutes:g} min; {options.workers} workers, "
        f"one of them, but never the first, killed every {options.kill_every:g} s on average; "
        f"{options.operators} operators; a line every {options.tell_every:g} s",
        flush=True,
    )
    queue, effects, began = f"soak-{uuid.uuid4().hex[:8]}", Effects(folder / "effects.sqlite"), time.monotonic()
    chance = random.Random(options.seed)
    soak = Soak(await _client(address, queue, folder), effects, chance, options.malformed)
    crew = Crew([Worker(address, queue, folder, effects.path, name=f"{n}") for n in range(options.workers)])
    await asyncio.gather(*(worker.start() for worker in crew.workers))
    around = [asyncio.create_task(operate(soak)) for _ in range(options.operators)]
    around += [asyncio.create_task(tell(soak, crew, options.tell_every))]
    around += [asyncio.create_task(crew.kill_at_random(soak, options.kill_every))]
    sessions = []
    try:
        for number in range(options.sessions):
            sessions.append(asyncio.create_task(live(soak, plan(queue, number, chance))))
            await asyncio.sleep(max(0.0, began + options.minutes * 60 * number / options.sessions - time.monotonic()))
        _, late = await asyncio.wait(sessions, timeout=options.patience * 60)
        soak.faults += [f"{len(late)} sessions have not come to their end"] if late else []
        soak.over = True
        worked_s = time.monotonic() - began
        await examine(soak)
        if crew.growth() > FLAT:
            soak.faults.append(f"the steady worker's memory grew by a factor of {crew.growth():.2f}")
        summary(soak, crew, worked_s, time.monotonic() - began)
    finally:
        for task in [*around, *sessions]:
            task.cancel()
        await asyncio.gather(*around, *sessions, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in crew.workers))
    return len(soak.faults)


async def _client(address: str, queue: str, folder: Path) -> AgentClient:
    temporal = await Client.connect(address, data_converter=data_converter(store_in(folder)))
    return AgentClient(temporal, task_queue=queue)


async def examine(soak: Soak) -> None:
    """Hold what has happened against what should have."""
    counts = soak.effects.counts()
    wanted = {label for plan_ in soak.started for label in plan_.wanted()}
    soak.faults += [f"effect lost: {label}" for label in sorted(wanted - set(counts))]
    soak.faults += [f"effect doubled: {label} {number} times" for label, number in counts.items() if number > 1]
    soak.faults += [f"effect without approval: {label}" for label in sorted(set(counts) - wanted)]
    gate = asyncio.Semaphore(EXAMINED_AT_ONCE)

    async def one(session_id: str) -> None:
        async with gate:
            session = soak.client.session(session_id)
            soak.faults += [f"{session_id}: {which}" for which in await failed_tasks(soak.client.temporal, session_id)]
            soak.faults += [
                f"{session_id}: can't be replayed: {which}" for which in await unreplayable(soak, session_id)
            ]
            try:
                async with asyncio.timeout(EXAMINED_S):
                    audit = await patiently(session.audit)
            except TimeoutError:
                soak.faults.append(f"{session_id}: its worker can't say what happened")
                return
            answered = {str(line.detail["question"]) for line in audit if line.event == "answered"}
            sent = {question for where, question, _ in soak.acknowledged if where == session_id}
            soak.faults += [f"{session_id}: answer lost: {question}" for question in sent - answered]

    await asyncio.gather(*(one(plan_.session_id) for plan_ in soak.started))


async def unreplayable(soak: Soak, session_id: str) -> list[str]:
    """What is wrong with a session's histories: a worker that does not know it must be able to take it over."""
    client = soak.client.temporal
    replayer = Replayer(workflows=[AgentSession], interceptors=[IntakeGuard()], data_converter=client.data_converter)
    found = []
    for events in await runs_of(client, session_id):
        result = await replayer.replay_workflow(WorkflowHistory(session_id, events), raise_on_replay_failure=False)
        if result.replay_failure is not None:
            found.append(str(result.replay_failure)[:300])
    return found


def summary(soak: Soak, crew: Crew, worked_s: float, seconds: float) -> None:
    """Print the figures."""
    counts = soak.effects.counts()
    ends = ", ".join(f"{number} with {reason}" for reason, number in Counter(soak.finished.values()).most_common())
    print(
        f"{len(soak.started)} sessions, {len(soak.finished)} finished ({ends}) in {worked_s:.0f} s, "
        f"examined until {seconds:.0f} s; {crew.kills} workers killed; {sum(counts.values())} effects, "
        f"{sum('effect lost' in fault for fault in soak.faults)} lost, "
        f"{sum('effect doubled' in fault for fault in soak.faults)} doubled; {len(soak.acknowledged)} answers "
        f"acknowledged, {sum('answer lost' in fault for fault in soak.faults)} lost"
    )
    print("\n".join(["what operators did and met, none of it a fault:", *(f"  {line}" for line in met(soak.counts))]))
    sizes = ", ".join(f"{mb:.0f}" for _, mb in crew.rss)
    print(f"memory of the worker that is never killed (RSS), from time to time: {sizes} MB")
    for fault in soak.faults[:50]:
        print(f"  FAULT {fault}")
    print(f"{len(soak.faults)} faults")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10, help="over which the sessions are started")
    parser.add_argument("--patience", type=float, default=5, help="minutes to wait for the last ones after that")
    parser.add_argument("--workers", type=int, default=3, help="processes; the first one is never killed")
    parser.add_argument("--kill-every", type=float, default=8, metavar="S", help="seconds, on average; 0 for never")
    parser.add_argument("--operators", type=int, default=6)
    parser.add_argument("--malformed", type=float, default=0.01, help="share of messages that are garbage")
    parser.add_argument("--tell-every", type=float, default=15, metavar="S", help="seconds between two lines")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random here; the timing is not")
    parser.add_argument("--address", default=None, help="a Temporal server; a dev server of its own if left out")
    sys.exit(min(1, asyncio.run(_with_server(parser.parse_args()))))


async def _with_server(options: argparse.Namespace) -> int:
    folder = Path(tempfile.mkdtemp(prefix="countersign-soak-"))
    try:
        if options.address is not None:
            return await run(options, options.address, folder)
        async with DevServer(leash=True) as server:
            return await run(options, server.address, folder)
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
