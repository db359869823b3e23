"""Direct calls: `agent.tool.name()`. What they have in common with Strands is in tests/differential/direct.py."""

import asyncio
import contextlib

import pytest
from tests.core.driving import acts, asking, make, reply, valid

from countersign import Agent, InterventionHandler, tool
from countersign.agent_core.deployment import load_agents
from countersign.agent_core.effects import on_a_worker
from countersign.errors import AgentDefinitionError, ConcurrencyException, PolicyViolationError
from countersign.hooks import AfterToolCallEvent, BeforeToolCallEvent
from countersign.interventions import Deny, Proceed


class Twice(InterventionHandler):
    """Lets two calls pass."""

    name = "twice"

    def __init__(self):
        self.count = 0

    def before_tool_call(self, event, **kwargs):
        self.count += 1
        return Proceed() if self.count <= 2 else Deny(reason="enough")


def test_handlers_remember_direct_calls():
    """A rate limit counts what the program calls itself and what the model calls."""
    log = []
    agent = make(log, acts(2, 3), hooks=[], interventions=[Twice()])
    agent.tool.act(x=1)
    agent("go")
    assert agent.tool.act(x=4)["content"] == [{"text": "DENIED: enough"}]
    assert log == [1, 2]


def test_a_swallowed_interrupt_does_not_let_a_direct_call_run():
    """The question was recorded before it was raised; nobody can answer it, so nothing runs."""
    log = []

    def swallow(event: BeforeToolCallEvent):
        with contextlib.suppress(BaseException):
            event.interrupt("ok?")

    with pytest.raises(RuntimeError, match="cannot raise interrupt in direct tool call"):
        make(log, acts(), hooks=[swallow]).tool.act(x=1)
    assert log == []


def test_a_question_of_a_direct_call_leaves_nothing_behind():
    """The next invocation asks its own question, and its answer is for that call."""
    log = []
    agent = make(log, acts(2), hooks=[asking])
    with pytest.raises(RuntimeError):
        agent.tool.act(x=1)
    assert agent(reply(agent("go"), "y")).stop_reason == "end_turn"
    assert log == [2] and valid(agent)


async def test_a_direct_call_while_the_agent_runs_is_refused():
    """Even if it would not be recorded: hooks and handlers are not called twice at a time."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def act(x: int) -> int:
        """Act."""
        begun.set()
        await go_on.wait()
        return x

    agent = make([], acts(1), hooks=[], tools=[act])
    running = asyncio.create_task(agent.invoke_async("go"))
    await begun.wait()
    for record in (True, False):
        with pytest.raises(ConcurrencyException, match="while the agent runs"):
            agent.tool.act(x=2, record_direct_tool_call=record)
    go_on.set()
    assert (await running).stop_reason == "end_turn"


def test_a_failing_after_hook_costs_no_result():
    """The tool ran: the conversation says so, whatever the hook made of it."""
    log = []

    def fails(event: AfterToolCallEvent):
        raise ValueError("broken")

    agent = make(log, acts(), hooks=[fails])
    with pytest.raises(ValueError, match="broken"):
        agent.tool.act(x=1)
    assert log == [1] and valid(agent) and len(agent.messages) == 4


def test_what_is_no_json_reaches_the_tool_as_json():
    """A set becomes a list; what has no JSON fits no schema."""
    taken = []

    @tool
    def take(names: list[str]) -> int:
        """Take."""
        taken.append(names)
        return len(names)

    agent = Agent(tools=[take])
    assert agent.tool.take(names={"a"})["status"] == "success" and taken == [["a"]]
    assert agent.tool.take(names=object())["status"] == "error"
    with pytest.raises(TypeError, match="JSON can't hold"):
        agent.tool.take(names=[float("nan")])


def test_the_tools_are_listed_for_completion():
    """`dir(agent.tool)` has their names, and no name of its own that a tool could have."""
    assert dir(make([], acts()).tool) == ["act"]


def test_nothing_is_called_or_run_while_an_agent_is_built_for_a_worker(tmp_path, monkeypatch):
    """A factory runs again for every cycle: what it calls would run unasked and unrecorded, each time."""
    (tmp_path / "eager_agents.py").write_text(
        "from countersign import Agent, ScriptedModel, durable, tool\n"
        "@tool\n"
        "def act(x: int) -> int:\n"
        "    return x\n"
        "@durable('eager')\n"
        "def eager():\n"
        "    agent = Agent(ScriptedModel(['hi']), tools=[act])\n"
        "    agent.tool.act(x=1)\n"
        "    return agent\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AgentDefinitionError, match=r"PolicyViolationError: .*@step"):
        load_agents(["eager_agents"])
    token = on_a_worker.set(True)
    try:
        with pytest.raises(PolicyViolationError, match="can't be run by a hook"):
            make([], acts(1))("go")
    finally:
        on_a_worker.reset(token)
