"""The reference session: what is asked of it, who answers what, and what must be true of it in the end."""

import asyncio
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client
from tests.crash.histories import failed_tasks

from countersign.agent_client.errors import AgentRunError, ClientError, SessionEndedError, SessionNotFoundError
from countersign.agent_core.conversation import SEGMENT_BYTES
from countersign.agent_core.messages import Message, history_faults
from countersign.agent_core.wire import Question
from countersign.client import AgentClient, SessionHandle

T = TypeVar("T")

LARGE = " ".join(hashlib.sha256(bytes([n // 256, n % 256])).hexdigest() for n in range(SEGMENT_BYTES // 64))
"""Too much to stay in a history, also compressed: the conversation's first piece goes to storage."""

FIRST = f"pay:a pay:b choose:c fail:d note:e ship:f delete:risky-g delete:h / note:i / {LARGE}"
SECOND = "ship:j"
OPTIONS = {"lifetime": "open", "continue_after_events": 60}

ANSWERS = {"batch": "y", "a": "y", "b": "n: not that one", "c": "blue", "risky-g": "y"}
"""By the question's label."""

CHANNELS = {"batch": "signal", "a": "update", "b": "update", "c": "signal", "risky-g": "invoke"}

TEXTS = {
    "c": "did c in blue",
    "d": "Error: d went wrong",
    **{label: f"did {label}" for label in ("a", "e", "f", "risky-g", "h", "i", "j")},
}
"""What each call that runs says; it runs exactly once."""

ASKED = Counter({"batch": 1, "payment": 2, "colour": 1, "countersign:human-in-the-loop": 1})
"""Questions by name; nothing is asked twice."""

UNKNOWN = "unknown-outcome"

FINAL = (AgentRunError, SessionEndedError, SessionNotFoundError)
"""What a client program does not try again; anything else says that a worker or the server is away, or overrun."""


class Effects:
    """The file that tools write to.

    Args:
        path: Of the SQLite file; made if it is missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode=WAL")
            file.execute("CREATE TABLE IF NOT EXISTS effects (label TEXT NOT NULL)")
            file.execute("CREATE INDEX IF NOT EXISTS by_label ON effects (label)")
            file.commit()

    def counts(self) -> Counter[str]:
        """How often each effect has happened."""
        with closing(sqlite3.connect(self.path, timeout=30)) as file:
            return Counter(label for (label,) in file.execute("SELECT label FROM effects"))

    def counts_of(self, label: str) -> int:
        """How often one effect has happened."""
        with closing(sqlite3.connect(self.path, timeout=30)) as file:
            found = file.execute("SELECT count(*) FROM effects WHERE label = ?", (label,)).fetchone()
        return int(found[0])


@dataclass
class Report:
    """What came of one session.

    Attributes:
        transcript: (role, texts and calls) of each message.
        effects: How often each effect happened.
        unknown: Labels of the calls whose outcome a person had to find out.
        acknowledged: (question id, answer) of the answers that were taken.
        faults: What is not as promised, in words.
    """

    transcript: list[Any] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    acknowledged: list[tuple[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def label_of(question: Question) -> str:
    """What a question is about."""
    if question.name == "batch":
        return "batch"
    call = question.calls[0].input
    return str(call["label"]) if isinstance(call, dict) else ""


class Operator:
    """A client program: it answers what the session asks, prompts once more, and closes it.

    Args:
        session: The session.
        effects: Where it looks before it says what became of a call.
        report: Where it writes down what it did.
    """

    def __init__(self, session: SessionHandle, effects: Effects, report: Report) -> None:
        self._session, self._effects, self._report = session, effects, report

    async def work(self) -> None:
        """Do all of it."""
        await self._answer_all()
        await patiently(lambda: self._session.invoke(SECOND))
        await self._answer_all()  # the second turn may have left a call in doubt
        await patiently(self._session.close)
        await patiently(self._session.result)

    async def _answer_all(self) -> None:
        while questions := await patiently(self._session.wait_for_questions):
            await self._answer(questions[0])

    async def _answer(self, question: Question) -> None:
        label = label_of(question)
        if question.name == UNKNOWN:
            ran = self._effects.counts_of(label) > 0
            self._report.unknown.append(label)
            answer: Any = {"result": TEXTS[label]} if ran else "retry"
            channel = "update"
        else:
            answer, channel = ANSWERS[label], CHANNELS[label]
        pair = (question.id, answer)
        send: dict[str, Callable[..., Awaitable[Any]]]
        send = {"update": self._session.answer, "invoke": self._session.invoke, "signal": self._session.respond}
        await patiently(lambda: send[channel](pair))
        self._report.acknowledged.append(pair)
        while any(found.id == question.id for found in await patiently(self._session.interrupts)):
            await asyncio.sleep(0.05)  # a signal is acknowledged before it is handled


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Call until somebody is there to answer."""
    while True:
        try:
            return await call()
        except FINAL:
            raise
        except ClientError:
            await asyncio.sleep(0.1)


async def begin(client: Client, queue: str) -> SessionHandle:
    """Start the reference session."""
    argument = {"protocol": 1, "agent": "reference", "prompt": FIRST, **OPTIONS}
    session_id = f"crash-{queue}"
    await client.start_workflow("AgentSession", argument, id=session_id, task_queue=queue)
    return AgentClient(client).session(session_id)


async def examine(client: Client, session: SessionHandle, effects: Effects, report: Report) -> None:
    """Hold a finished session against what was promised; the faults go into the report."""
    messages = [message async for message in session.transcript()]
    audit, failed = await session.audit(), await failed_tasks(client, session.id)
    report.transcript = [shown(message) for message in messages]
    report.faults += [f"history: {fault}" for fault in history_faults(messages)]
    report.effects = effects.counts()
    for label in sorted({*TEXTS, *report.effects}):
        wanted, found = int(label in TEXTS), report.effects[label]
        if found != wanted:
            report.faults.append(f"effect {label}: {found} times instead of {wanted}")
    answered = [(str(e.detail["question"]), e.detail["answer"]["response"]) for e in audit if e.event == "answered"]
    report.faults += [f"answer lost: {given}" for given in report.acknowledged if given not in answered]
    asked = {str(e.detail["question"]): str(e.detail["name"]) for e in audit if e.event == "question_asked"}
    again = Counter(asked.values()) - ASKED
    report.faults += [f"asked again: {name}" for name in again if name != UNKNOWN]
    settled = {question for question, _ in answered}
    report.faults += [f"never answered: {asked[question]} {question}" for question in asked if question not in settled]
    report.faults += [f"workflow task failed: {which}" for which in failed]


def shown(message: Message) -> Any:
    """A message, as far as two runs must agree on it: a recorded result has no error status."""
    found: list[Any] = []
    for block in message["content"]:
        if "toolResult" in block:
            result = block["toolResult"]
            found.append((result["toolUseId"], *(part.get("text", "") for part in result["content"])))
        elif "toolUse" in block:
            found.append((block["toolUse"]["toolUseId"], block["toolUse"]["name"], str(block["toolUse"]["input"])))
        else:
            found.append(block.get("text", ""))
    return message["role"], found
