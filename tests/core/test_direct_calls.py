"""Direct calls: `agent.tool.name()`. What they have in common with Strands is in tests/differential/direct.py."""

import asyncio
import contextlib

import pytest
from tests.core.driving import acts, asking, make, reply, valid

from countersign import Agent, InterventionHandler, ScriptedModel, ToolContext, tool
from countersign.agent_core.deployment import load_agents
from countersign.agent_core.effects import on_a_worker
from countersign.errors import AgentDefinitionError, ConcurrencyException, PolicyViolationError
from countersign.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeToolCallEvent, BeforeToolsEvent
from countersign.interventions import Deny, Proceed
from countersign.models import calls
from countersign.vended_interventions.hitl import HumanInTheLoop, LLMClassifierConfig


class Twice(InterventionHandler):
    """Lets two calls pass."""

    name = "twice"

    def __init__(self):
        self.count = 0

    def before_tool_call(self, event, **kwargs):
        self.count += 1
        return Proceed() if self.count <= 2 else Deny(reason="enough")


def audit(agent):
    """The events of the audit trail, in order, and its last line's detail."""
    lines = agent._here()._session.state.audit
    return [line.event for line in lines], lines[-1].detail


@pytest.mark.parametrize("idempotent", [False, True])
def test_each_direct_call_has_a_key_of_its_own(idempotent):
    """A payment service that drops what it has seen loses no payment; a turn's calls have other keys again."""
    keys = []

    @tool(context=True, idempotent=idempotent)
    def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        keys.append(tool_context.idempotency_key)
        return "paid"

    script = [calls(("pay", {"amount": 1})), "done"]
    agent = make([], script, hooks=[], tools=[pay])
    for amount in (1, 1, 2):
        agent.tool.pay(amount=amount)
    agent("go")
    agent.tool.pay(amount=1)
    assert len(set(keys)) == len(keys) == 5


def test_a_batch_hook_refuses_a_direct_call():
    """A gate is a gate, whichever event it stands at; begin and end of the batch come in pairs."""
    log, seen = [], []

    def gate(event: BeforeToolsEvent):
        seen.append(event.message["content"][0]["toolUse"]["input"])
        event.cancel = "not today" if seen[-1]["x"] == 1 else False

    def ended(event: AfterToolsEvent):
        seen.append(len(event.message["content"]))

    agent = make(log, acts(), hooks=[gate, ended])
    refused, ran = agent.tool.act(x=1), agent.tool.act(x=2)
    assert (refused["status"], refused["content"], ran["status"]) == ("error", [{"text": "not today"}], "success")
    assert log == [2] and seen == [{"x": 1}, 1, {"x": 2}, 1] and valid(agent)


def test_a_batch_hook_that_asks_stops_a_direct_call():
    """Nobody can answer, so nothing runs; as for a question about the call alone."""
    log = []

    def asks(event: BeforeToolsEvent):
        event.interrupt("all of these?")

    agent = make(log, acts(), hooks=[asks])
    with pytest.raises(RuntimeError, match="cannot raise interrupt in direct tool call"):
        agent.tool.act(x=1)
    assert log == [] and agent.messages == []
    assert audit(agent)[0] == ["question_asked", "direct_call"]


def test_the_audit_trail_has_direct_calls():
    """What a program does itself is written down like what a model asks for; so is what its judges cost."""
    judge = ScriptedModel(lambda scene: calls(("verdict", {"requires_approval": False, "reason": "harmless"})))
    agent = make([], acts(), hooks=[], interventions=[HumanInTheLoop(classifier=LLMClassifierConfig(model=judge))])
    agent.tool.act(x=1)
    events, last = audit(agent)
    assert events[-3:] == ["tool_started", "tool_ended", "direct_call"]
    assert last["tool"] == "act" and last["ended"] == "success" and last["usage"]["totalTokens"] > 0
    assert agent._here()._session.state.progress.usage == last["usage"]


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
