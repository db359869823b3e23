"""Plays a scenario on one side and writes down everything that a user of that side could see."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.differential.sdk import TRACE_KEY, World, plain

Reply = Sequence[Any] | Callable[[Sequence[Any]], list[Any]]
"""Answers to the open interrupts in their order (`...` leaves one open), or a function from them to blocks."""

TURN_LIMIT = 20


@dataclass(frozen=True)
class Scenario:
    """One agent and what people say to it.

    Attributes:
        name: Unique.
        build: Makes the agent.
        replies: One for each time that the loop stops for questions.
        prompts: What the user says, one after the other.
        known: Names of the listed differences that it runs into; see `differences.DIFFERENCES`.
    """

    name: str
    build: Callable[[World], Any]
    replies: Sequence[Reply] = ()
    prompts: Sequence[Any] = ("go",)
    known: tuple[str, ...] = ()


@dataclass
class Trace:
    """What happened.

    Attributes:
        stops: Why the loop stopped each time, or the error by type and text.
        asked: Names and reasons of the open interrupts each time.
        log: What hooks, handlers and tools did, in order; by call if calls ran side by side.
        messages: The conversation.
        seen: What the model was given, call by call.
        state: `agent.state` at the end.
    """

    stops: list[str] = field(default_factory=list)
    asked: list[list[Any]] = field(default_factory=list)
    log: Any = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)

    def differs(self, other: "Trace") -> set[str]:
        """Names of the fields that differ."""
        mine, theirs = asdict(self), asdict(other)
        return {name for name in mine if mine[name] != theirs[name]}


async def in_process(scenario: Scenario, root: str, make_model: Callable[[Any, list[Any]], Any]) -> Trace:
    """Play it with the agent of one side, in this process.

    Args:
        scenario: What to play.
        root: The side.
        make_model: Makes its model from the script and a list for what the model sees.
    """
    log: list[tuple[str, str]] = []
    seen: list[Any] = []
    agent = scenario.build(World(root, lambda script: make_model(script, seen), log))
    trace = Trace(seen=seen)

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        result = await agent.invoke_async(prompt)
        return result.stop_reason, list(result.interrupts or [])

    await play(scenario, invoke, trace)
    trace.messages = plain(agent.messages)
    trace.state = dict(agent.state.get())
    trace.log = arranged(log, trace.messages)
    return levelled(trace)


async def play(scenario: Scenario, invoke: Callable[[Any], Awaitable[tuple[str, list[Any]]]], trace: Trace) -> None:
    """Send the prompts and replies."""
    replies = iter(scenario.replies)
    for prompt in scenario.prompts:
        sent: Any = prompt
        for _ in range(TURN_LIMIT):
            try:
                stop, interrupts = await invoke(sent)
            except Exception as error:
                cause = getattr(error, "original_exception", error)
                trace.stops.append(f"{type(cause).__name__}: {cause}")
                break
            trace.stops.append(stop)
            if stop != "interrupt":
                break
            trace.asked.append([[item.name, item.reason] for item in interrupts])
            reply = next(replies, None)
            if reply is None:
                break
            sent = reply(interrupts) if callable(reply) else blocks(interrupts, reply)
        else:
            raise AssertionError(f"{scenario.name} does not stop")


def blocks(interrupts: Sequence[Any], responses: Sequence[Any]) -> list[Any]:
    """`interruptResponse` blocks for the open interrupts, in their order."""
    return [
        {"interruptResponse": {"interruptId": interrupt.id, "response": response}}
        for interrupt, response in zip(interrupts, responses, strict=False)
        if response is not ...
    ]


def arranged(log: Sequence[Sequence[str]], messages: Sequence[Any]) -> Any:
    """The log as it can be compared: in order, or call by call where calls ran side by side."""
    most = max((sum("toolUse" in block for block in message["content"]) for message in messages), default=0)
    if most <= 1:
        return [list(entry) for entry in log]
    by_call: dict[str, list[str]] = {}
    for call, text in log:
        by_call.setdefault(call, []).append(text)
    return by_call


_PROMPTS = re.compile(
    r"Tool \\\"(?P<ours>\w+)\\\" requires human approval(?: \((?P<our_reason>[^)]*)\))?\. Input: "
    r"|Approve \\\"(?P<theirs>\w+)\\\"(?: \\u2014 (?P<their_reason>[^?]*))?\?\\n  Input: "
)


def levelled(trace: Trace) -> Trace:
    """The trace with the names and words of `HumanInTheLoop` put on one level (listed in `differences`)."""
    text = json.dumps(asdict(trace))
    text = re.sub(r"(strands|countersign):human-in-the-loop", "hitl", text)
    text = re.sub(r"hitl:trusted_tools|countersign:trusted-tools", "trusted", text)
    text = _PROMPTS.sub(
        lambda found: f"<ask about {found['ours'] or found['theirs']}"
        f" because {found['our_reason'] or found['their_reason']}> ",
        text,
    )
    found = Trace(**json.loads(text))
    found.state.pop(TRACE_KEY, None)
    return found
