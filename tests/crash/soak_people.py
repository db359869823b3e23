"""The people of a soak: those who start sessions and prompt them, and operators who answer whatever they see."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import WorkflowUpdateFailedError
from temporalio.service import RPCError
from tests.crash.reference import UNKNOWN, Effects, patiently
from tests.crash.soak_plan import Plan, answer_to

from countersign.agent_client.errors import ClientError
from countersign.agent_core.errors import AnswerRefused
from countersign.client import AgentClient, SessionHandle

MALFORMED: list[Any] = [
    None,
    7,
    "y",
    [],
    {},
    [{}],
    {"interruptResponse": {}},
    {"interruptResponse": {"interruptId": "x"}},
]

IN_VAIN = {"already_answered", "not_interrupted", "unknown_interrupt", "withdrawn", "closed"}
"""Refusals of an answer to a question that another operator was quicker with."""


@dataclass
class Soak:
    """What everybody in a soak shares.

    Attributes:
        client: A client of the sessions.
        effects: What tools did.
        chance: Everybody's luck.
        malformed: The share of operators' messages that are garbage.
        started: Sessions that were started.
        finished: Session ids that came to their end, with their stop reasons.
        acknowledged: (session, question, answer) of the answers that were taken.
        counts: Of what operators did.
        faults: What is not as promised, in words.
        over: True once operators may go home.
    """

    client: AgentClient
    effects: Effects
    chance: random.Random
    malformed: float
    started: list[Plan] = field(default_factory=list)
    finished: dict[str, str] = field(default_factory=dict)
    acknowledged: list[tuple[str, str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    over: bool = False


async def live(soak: Soak, plan: Plan) -> None:
    """Start a session, give it its prompts, and wait for its end."""
    argument = {"protocol": 1, "agent": "reference", "prompt": plan.prompts[0], **plan.options}
    soak.started.append(plan)
    await soak.client.temporal.start_workflow(
        "AgentSession", argument, id=plan.session_id, task_queue=soak.client.task_queue
    )
    session = soak.client.session(plan.session_id)
    try:
        if plan.options["lifetime"] == "open":
            for prompt in plan.prompts[1:]:
                await _until_idle(session)
                await patiently(lambda text=prompt: session.prompt(text))  # type: ignore[misc]  # its argument is its default
                await asyncio.sleep(1)  # a signal shows in the status once it is handled
            await _until_idle(session)
            await patiently(session.close)
        soak.finished[plan.session_id] = (await patiently(session.result)).stop_reason
    except Exception as error:  # a finding
        soak.faults.append(f"{plan.session_id}: {type(error).__name__}: {error}")


async def _until_idle(session: SessionHandle) -> None:
    """Wait until the session's loop has stopped without a question."""
    pause_s = 0.2
    while (await patiently(session.status))["status"] not in ("idle", "closed"):
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, 3.0)


async def operate(soak: Soak) -> None:
    """Answer random questions from the list until the soak is over."""
    while not soak.over:
        try:
            waiting = [item async for item in soak.client.sessions("reference", asking=True, limit=50)]
            soak.chance.shuffle(waiting)
            for item in waiting[:10]:
                for card in soak.chance.sample(item.questions, min(2, len(item.questions))):
                    await _answer(soak, soak.client.session(item.session_id), card)
        except ClientError as error:
            soak.counts[f"operator met {type(error).__name__}"] += 1
        await asyncio.sleep(soak.chance.uniform(0.1, 0.5))


async def _answer(soak: Soak, session: SessionHandle, card: dict[str, Any]) -> None:
    if soak.chance.random() < soak.malformed:
        await _garbage(soak, session)
    answer = answer_to(card, session.id, soak.effects)
    soak.counts["unknown outcomes answered" if card["name"] == UNKNOWN else "answers sent"] += 1
    pair = (str(card["id"]), answer)
    try:
        if soak.chance.random() < 0.3:
            await session.respond(pair)
            return
        await session.answer(pair)
        soak.acknowledged.append((session.id, *pair))
    except AnswerRefused as refused:
        soak.counts[f"refused: {refused.code}"] += 1
        if refused.code not in IN_VAIN:
            soak.faults.append(f"{session.id}: a good answer was refused: {refused.code}: {refused}")


async def _garbage(soak: Soak, session: SessionHandle) -> None:
    """Send what is no answer."""
    handle = soak.client.temporal.get_workflow_handle(session.id)
    value = soak.chance.choice(MALFORMED)
    soak.counts["malformed sent"] += 1
    try:
        if soak.chance.random() < 0.5:
            await handle.signal("respond", value)
        else:
            await handle.execute_update("answer", value)
            soak.faults.append(f"{session.id}: garbage was taken for an answer: {value!r}")
    except (WorkflowUpdateFailedError, RPCError):
        return


def met(counts: Counter[str]) -> list[str]:
    """What operators did and met, in words, a line each.

    Args:
        counts: As in `Soak`; what no line here tells stands there under its own name.
    """
    late = sum(counts[f"refused: {code}"] for code in IN_VAIN)
    told = {
        "answers sent": "answers sent, a third of them by signal, which nobody acknowledges",
        "unknown outcomes answered": "calls had been cut by a kill, and an operator said what had become of them",
        "malformed sent": "messages were garbage, on purpose",
        "operator met SessionEndedError": "times a session had ended before an operator's answer came",
        "operator met NoWorkerError": "times no worker was there to take an answer: one had just been killed",
        "operator met SessionNotFoundError": "times a session of the list was not there any more",
    }
    lines = [f"{counts[key]} {words}" for key, words in told.items() if counts[key]]
    lines += [f"{late} answers came too late: another operator had been quicker"] if late else []
    known = told.keys() | {f"refused: {code}" for code in IN_VAIN}
    return lines + [f"{number} times: {key}" for key, number in sorted(counts.items()) if key not in known]
