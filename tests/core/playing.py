"""Plays a plan in this process and keeps what its questions showed, what was answered, and what ran."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.core.driving import block
from tests.core.planned import RAN, TURNS, planned

from countersign.agent_core.messages import Message, history_faults, tool_uses
from countersign.agent_core.wire import Question
from countersign.errors import AnswerRefused, EventLoopException


@dataclass
class Played:
    """A plan that was played.

    Attributes:
        agent: The agent.
        stops: Why the loop stopped each time, or the error's type.
        questions: Every question that was ever seen, by id, as last seen.
        given: The answers that were taken, by question.
        faults: What was wrong with the conversation, at any stop.
    """

    agent: Any
    stops: list[str] = field(default_factory=list)
    questions: dict[str, Question] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def ran(self) -> dict[str, list[Any]]:
        """(tool, input) of each run, by the call's id."""
        state = self.agent.state.get()
        return {key.removeprefix(RAN): runs for key, runs in state.items() if key.startswith(RAN)}

    @property
    def waits(self) -> bool:
        """True if it stopped for answers."""
        return bool(self.stops) and self.stops[-1] == "interrupt"

    def look(self) -> None:
        """Note the questions, and whether the conversation is valid but for what waits."""
        pending = self.agent._here()._session.state.pending
        for question in pending.questions if pending else []:
            self.questions[question.id] = question.model_copy(deep=True)
        messages: list[Message] = list(self.agent.messages)
        if pending is not None:
            if not messages or not tool_uses(messages[-1]):
                self.faults.append("the last message of what waits asks for no tools")
            messages = messages[:-1]
        self.faults += history_faults(messages)


def replies(open_ids: list[str], answers: list[Any]) -> list[dict[str, Any]]:
    """Blocks for the open questions, as the plan has it; at least one of them."""
    sent: list[dict[str, Any]] = []
    for question in open_ids:
        answer = answers.pop(0) if answers else "n"
        if answer == "twice":
            sent += [block(question, "y"), block(question, "y")]
        elif answer == "other id":
            sent += [block(question, "y"), block("int-0-0-unknown", "y")]
        elif answer not in ("leave", "cancel"):
            sent.append(block(question, answer))
    return sent or [block(open_ids[0], "n")]


async def play(plan: dict[str, Any]) -> Played:
    """Play a plan until the turn is over, or for as many stops as a plan may take."""
    played = Played(planned(sequential=plan["sequential"]))
    answers: list[Any] = list(plan["answers"])
    sent: Any = json.dumps(plan)
    for _ in range(TURNS):
        before = played.agent._here()._session.state.model_dump_json()
        try:
            result = await played.agent.invoke_async(sent)
        except AnswerRefused:
            assert played.agent._here()._session.state.model_dump_json() == before, "a refused batch changed something"
            sent = [item for item in sent if item["interruptResponse"]["interruptId"] != "int-0-0-unknown"]
            result = await _again(played, sent)
        except EventLoopException as error:
            _note(played, sent)
            played.stops.append(type(error.original_exception).__name__)
            played.look()
            break
        if result is None:
            break
        played.stops.append(result.stop_reason)
        _note(played, sent)
        played.look()
        if result.stop_reason != "interrupt":
            break
        if answers and answers[0] == "cancel":
            played.agent.cancel()
        sent = replies([item.id for item in result.interrupts], answers)
    return played


async def _again(played: Played, sent: list[dict[str, Any]]) -> Any:
    """What was refused as a batch, without the bad part of it."""
    try:
        return await played.agent.invoke_async(sent)
    except EventLoopException as error:
        _note(played, sent)
        played.stops.append(type(error.original_exception).__name__)
        played.look()
        return None


def _note(played: Played, sent: Any) -> None:
    for item in sent if isinstance(sent, list) else ():
        inner = item["interruptResponse"]
        played.given.setdefault(inner["interruptId"], inner["response"])
