"""The contenders, each with the same few verbs: run a session, start one that asks, answer it.

Public APIs only: what is measured is what a user would call.
"""

import importlib.util
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

from temporalio.client import Client

from benchmarks.work import prompt
from countersign.client import AgentClient

OUR_QUEUE = "countersign"
FLOOR = "floor"
PEER = "peer"
DEFAULT = "countersign"


class Way(ABC):
    """One contender.

    Attributes:
        name: As it stands in tables.
        worker: The contender whose worker process does the work; several can share one.
    """

    name: str
    worker: str

    @abstractmethod
    def command(self, address: str, cached: int) -> list[str]:
        """Python's arguments for its worker.

        Args:
            address: The server's host:port.
            cached: How many workflows the worker keeps in memory.
        """

    @abstractmethod
    async def start(self, client: Client, session_id: str, cycles: int, *, asks: bool = False) -> None:
        """Start a session of so many cycles, which then asks a person if `asks`."""

    @abstractmethod
    async def asks(self, client: Client, session_id: str) -> Any:
        """The question that it waits with; None if it does not wait."""

    @abstractmethod
    async def answer(self, client: Client, session_id: str, question: Any) -> None:
        """Approve; returns when the answer is delivered."""

    async def result(self, client: Client, session_id: str) -> None:
        """Wait for the end of the session."""
        await client.get_workflow_handle(session_id).result()


class Ours(Way):
    """Countersign.

    Args:
        name: As it stands in tables.
        handover_after: How long fast cycles share a workflow; None for the default.
        signals: Whether answers go as signals, unconfirmed, and not as updates.
    """

    def __init__(self, name: str = DEFAULT, *, handover_after: timedelta | None = None, signals: bool = False) -> None:
        self.name, self.worker = name, DEFAULT
        self._handover_after = handover_after
        self._signals = signals

    def command(self, address: str, cached: int) -> list[str]:
        """See `Way`."""
        options = ["--address", address, "--max-cached-workflows", str(cached), "--task-queue", OUR_QUEUE]
        return ["-m", "countersign.worker", "--agents", "benchmarks.agent", *options]

    async def start(self, client: Client, session_id: str, cycles: int, *, asks: bool = False) -> None:
        """See `Way`."""
        agents = AgentClient(client, task_queue=OUR_QUEUE)
        said = prompt(cycles, asks=asks)
        await agents.start("bench", said, session_id=session_id, handover_after=self._handover_after)

    async def asks(self, client: Client, session_id: str) -> Any:
        """See `Way`."""
        questions = await client.get_workflow_handle(session_id).query("interrupts")
        return questions[0]["id"] if questions else None

    async def answer(self, client: Client, session_id: str, question: Any) -> None:
        """See `Way`."""
        session = AgentClient(client, task_queue=OUR_QUEUE).session(session_id)
        await (session.respond if self._signals else session.answer)((question, "y"))


class Plain(Way):
    """The floor and the peer: a workflow that takes the prompt, and a signal.

    Args:
        name: As it stands in tables, and of its module here.
        workflow: Workflow type.
        task_queue: Its worker's queue.
        answers: Arguments of the signal.
    """

    def __init__(self, name: str, workflow: str, task_queue: str, answers: list[Any]) -> None:
        self.name = self.worker = name
        self._workflow, self._task_queue, self._answers = workflow, task_queue, answers

    def command(self, address: str, cached: int) -> list[str]:
        """See `Way`."""
        return ["-m", f"benchmarks.{self.name}", "--address", address, "--max-cached-workflows", str(cached)]

    async def start(self, client: Client, session_id: str, cycles: int, *, asks: bool = False) -> None:
        """See `Way`."""
        said = prompt(cycles, asks=asks)
        await client.start_workflow(self._workflow, said, id=session_id, task_queue=self._task_queue)

    async def asks(self, client: Client, session_id: str) -> Any:
        """See `Way`."""
        return await client.get_workflow_handle(session_id).query("asks") or None

    async def answer(self, client: Client, session_id: str, question: Any) -> None:
        """See `Way`."""
        await client.get_workflow_handle(session_id).signal("approve", args=self._answers)


OURS = Ours()
OURS_ONE_EACH = Ours("handover_after=0", handover_after=timedelta(0))
OURS_PATIENT = Ours("handover_after=60 s", handover_after=timedelta(seconds=60))
OURS_BY_SIGNAL = Ours("countersign, signal", signals=True)
THE_FLOOR = Plain(FLOOR, "Floor", "bench-floor", [])
THE_PEER = Plain(PEER, "Peer", "bench-peer", ["y"])


def peer_is_installed() -> bool:
    """True if the peer can be measured: it comes with the extra `bench`, and not with what `make install` installs."""
    return importlib.util.find_spec("temporalio.strands_agents") is not None
