"""Plays a scenario on one side and writes down everything that a user of that side could see."""

import copy
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.differential.sdk import TRACE_KEY, World, plain

Reply = Sequence[Any] | Callable[[Sequence[Any]], list[Any]]
"""Answers to the open interrupts in their order (`...` leaves one open), or a function from them to blocks."""

TURN_LIMIT = 20


@dataclass(frozen=True)
class Does:
    """What a program does to its agent in the place of a prompt: a direct call, a cancellation.

    Attributes:
        do: Gets the agent; what it returns is written down as a stop.
    """

    do: Callable[[Any], Any]


@dataclass(frozen=True)
class Scenario:
    """One agent and what people say to it.

    Attributes:
        name: Unique.
        build: Makes the agent.
        replies: One for each time that the loop stops for questions.
        prompts: What the user says, one after the other; a function gets the last interrupts.
        call: Further arguments of every call with a prompt.
        raw: True to leave the trace as it is: results in the order in which they stand in their message, and the
            names and words of `HumanInTheLoop`.
        known: Names of the listed differences that it runs into; see `differences.DIFFERENCES`.
    """

    name: str
    build: Callable[[World], Any]
    replies: Sequence[Reply] = ()
    prompts: Sequence[Any] = ("go",)
    call: dict[str, Any] = field(default_factory=dict)
    raw: bool = False
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
        outputs: What structured output came.
        ids: Of the open interrupts each time; never compared.
        raised: The type of each error that reached the caller, which may wrap another; never compared.
    """

    stops: list[str] = field(default_factory=list)
    asked: list[list[Any]] = field(default_factory=list)
    log: Any = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    ids: list[list[str]] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)

    def differs(self, other: "Trace") -> set[str]:
        """Names of the fields that differ."""
        mine, theirs = asdict(self), asdict(other)
        return {name for name in mine if name not in ("ids", "raised") and mine[name] != theirs[name]}


async def in_process(
    scenario: Scenario, root: str, make_model: Callable[[Any, list[Any]], Any], **options: Any
) -> Trace:
    """Play it with the agent of one side, in this process.

    Args:
        scenario: What to play.
        root: The side.
        make_model: Makes its model from the script and a list for what the model sees.
        **options: More arguments of that side's `Agent`.
    """
    log: list[tuple[str, str]] = []
    seen: list[Any] = []
    agent = scenario.build(World(root, lambda script: make_model(script, seen), log, **options))
    trace = Trace(seen=seen)

    async def invoke(prompt: Any) -> tuple[str, list[Any]]:
        if isinstance(prompt, Does):
            return str(prompt.do(agent)), []
        result = await agent.invoke_async(prompt, **({} if answers(prompt) else copy.deepcopy(scenario.call)))
        if (output := result.structured_output) is not None:
            trace.outputs.append((type(output).__name__, output.model_dump(mode="json")))
        return result.stop_reason, list(result.interrupts or [])

    await play(scenario, invoke, trace)
    trace.messages = plain(agent.messages)
    trace.state = dict(agent.state.get())
    trace.log = arranged(log, trace.messages)
    if scenario.raw:
        return trace
    found = levelled(trace)
    for messages in (found.messages, *found.seen):
        in_call_order(messages)
    return found


def in_call_order(messages: Sequence[Any]) -> None:
    """Put the results of each message into the order of its calls; the reference puts first what ends first."""
    order: dict[str, int] = {}
    for message in messages:
        order.update({b["toolUse"]["toolUseId"]: i for i, b in enumerate(message["content"]) if "toolUse" in b})
        if message["content"] and all("toolResult" in block for block in message["content"]):
            message["content"].sort(key=lambda block: order.get(block["toolResult"]["toolUseId"], -1))


async def play(scenario: Scenario, invoke: Callable[[Any], Awaitable[tuple[str, list[Any]]]], trace: Trace) -> None:
    """Send the prompts and replies."""
    replies = iter(scenario.replies)
    interrupts: list[Any] = []
    for prompt in scenario.prompts:
        sent: Any = prompt(interrupts) if callable(prompt) else prompt
        for _ in range(TURN_LIMIT):
            try:
                stop, interrupts = await invoke(sent)
            except Exception as error:
                trace.raised.append(type(error).__name__)
                cause = getattr(error, "original_exception", error)
                trace.stops.append(f"{type(cause).__name__}: {cause}")
                break
            trace.stops.append(stop)
            if stop != "interrupt":
                break
            trace.asked.append([[item.name, item.reason] for item in interrupts])
            trace.ids.append([item.id for item in interrupts])
            reply = next(replies, None)
            if reply is None:
                break
            sent = reply(interrupts) if callable(reply) else blocks(interrupts, reply)
        else:
            raise AssertionError(f"{scenario.name} does not stop")


def answers(prompt: Any) -> bool:
    """True for a list of `interruptResponse` blocks."""
    return isinstance(prompt, list) and any("interruptResponse" in block for block in prompt)


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


_PROMPT = re.compile(
    r'Tool "(?P<ours>\w+)" requires human approval(?: \((?P<our_reason>[^)]*)\))?\. Input: '
    r'|Approve "(?P<theirs>\w+)"(?: — (?P<their_reason>[^?]*))?\?(?:\n|\\n)  Input: '
)
_NAME = re.compile(r"(strands|countersign):human-in-the-loop")
_DIRECT = re.compile(r"tooluse_(\w+)_\d+")
_NO_OUTPUT = re.compile(r"StructuredOutputException: .*", re.DOTALL)
_NO_FIT = re.compile(
    r"[\"']?(?:Error: (?:no \w+ can be made of|the input of \w+ (?:does not fit|must be an object))|"
    r"Validation failed for \w+\. Please fix|Unexpected error validating \w+:).*?(?=\}\] cancel=|$)",
    re.DOTALL,
)
"""What a model is told of an input that does not fit, in either side's words."""

_TRUSTED = re.compile(r"hitl:trusted_tools|countersign:trusted-tools")


def levelled(trace: Trace) -> Trace:
    """The trace with the names and words of `HumanInTheLoop` put on one level (listed in `differences`)."""
    found = Trace(**_level(asdict(trace)))
    found.state.pop(TRACE_KEY, None)
    return found


def _level(value: Any) -> Any:
    if isinstance(value, str):
        value = _TRUSTED.sub("trusted", _NAME.sub("hitl", _DIRECT.sub(r"direct \1", value)))
        value = _NO_FIT.sub("<does not fit>", _NO_OUTPUT.sub("StructuredOutputException", value))
        return _PROMPT.sub(lambda found: "<ask about {} because {}> ".format(
            found["ours"] or found["theirs"], found["our_reason"] or found["their_reason"]), value)  # fmt: skip
    if isinstance(value, dict):
        return {_level(key): _level(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_level(item) for item in value]
    return value
