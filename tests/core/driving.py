"""What the core's tests share: an agent with one scripted tool call, answers, and results."""

from datetime import UTC, datetime, timedelta

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.inprocess import InProcessSession
from countersign.agent_core.inprocess_effects import InProcessEffects
from countersign.agent_core.messages import history_faults
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent
from countersign.models import calls

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that moves only when told to."""

    def __init__(self, moment=START):
        self.moment = moment

    def forward(self, **units):
        self.moment += timedelta(**units)


class StillEffects(InProcessEffects):
    """In-process effects at a moment of our choice."""

    def __init__(self, agent, clock):
        super().__init__(agent, agent.model)
        self.clock = clock

    def now(self):
        return self.clock.moment


def asking(event: BeforeToolCallEvent):
    """The simplest hook that asks: "y" runs the call, anything else cancels it."""
    if event.interrupt("ok?", reason="sure?") != "y":
        event.cancel_tool = "denied"


def asks(name):
    """A hook that asks about each call, and cancels what is not approved."""

    def hook(event: BeforeToolCallEvent):
        if event.interrupt(name) != "y":
            event.cancel_tool = "denied"

    return hook


def asks_about_all(name):
    """A hook that asks about the batch, and cancels what is not approved."""

    def hook(event: BeforeToolsEvent):
        if event.interrupt(name) != "y":
            event.cancel = "denied"

    return hook


def make(tool_log, script, *, hooks=(asking,), tools=None, **options):
    """An agent with `act` (writes what it gets to `tool_log`) and a script."""

    @tool
    async def act(x: int = 0) -> int:  # async: threads side by side would write in any order
        """Act."""
        tool_log.append(x)
        return x

    return Agent(ScriptedModel(script), tools=tools if tools is not None else [act], hooks=list(hooks), **options)


def acts(*inputs):
    """A script: one message that calls `act` with each input, then "done"."""
    return [calls(*(("act", {"x": x}) for x in inputs)), "done"]


def reply(result, *responses):
    """`interruptResponse` blocks for the open interrupts, in their order."""
    return [block(interrupt.id, response) for interrupt, response in zip(result.interrupts, responses, strict=False)]


def block(interrupt_id, response, **extra):
    return {"interruptResponse": {"interruptId": interrupt_id, "response": response, **extra}}


def results(agent):
    """(status, text) of the tool results in the conversation, in order."""
    return [
        (part["toolResult"]["status"], part["toolResult"]["content"][0].get("text"))
        for message in agent.messages
        for part in message["content"]
        if "toolResult" in part
    ]


def succeed(old, new):
    """Let `new`, an agent built by other code, go on with the session of `old`."""
    session = InProcessSession(new)
    session._session = old._here()._session
    new._session = session
    return new


def questions(agent):
    """The questions of the pending batch, the settled ones too."""
    return agent._here()._session.state.pending.questions


def valid(agent):
    """True if every toolUse has its toolResult in the next message."""
    return history_faults(agent.messages) == []
