"""`CedarAuthorization` and the steering handlers on a worker: policed, recorded, and as good as new after a crash."""

import pytest
from tests.durable.test_waiting import history, questions

from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.wire import STEP_ACTIVITY

POLICY = """
permit(principal in Group::"payers", action, resource);
@id("large") @confirm("over 100") forbid(principal, action, resource) when { context.input.amount > 100 };
@id("never") forbid(principal, action, resource) when { context.input.amount > 1000 };
"""

CEDAR_AGENTS = '''
import os
import time
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, step, tool
from countersign.models import calls
from countersign.vended_interventions.cedar import CedarAuthorization, load_text

POLICY = load_text(Path(__file__).with_name("agent.cedar"))
ENTITIES = [{"uid": {"type": "User", "id": "alice"}, "attrs": {}, "parents": [{"type": "Group", "id": "payers"}]}]


@tool
def pay(amount: int) -> str:
    """Pay."""
    with open(os.environ["TRACE"], "a") as file:
        file.write(f"paid-{amount}\\n")
    return f"paid {amount}"


def payer(**options) -> Agent:
    def script(scene):
        return "done" if len(scene.turn) > 1 else calls(*(("pay", {"amount": int(x)}) for x in scene.prompt.split()))

    handler = CedarAuthorization(policies=POLICY, tools=[pay], entities=ENTITIES, **options)
    return Agent(ScriptedModel(script), tools=[pay], interventions=[handler])


@durable("payer")
def by_invocation() -> Agent:
    return payer()


@step
async def look_up(state: dict) -> dict | None:
    return {"type": "User", "id": Path(os.environ["TRACE"] + ".directory").read_text()}


@durable("looked-up")
def looked_up() -> Agent:
    return payer(principal_resolver=look_up)


@durable("reaching")
def reaching() -> Agent:
    return payer(principal_resolver=lambda state: {"type": "User", "id": str(time.time())})
'''

STEERING_AGENTS = '''
import json
import os

from countersign import Agent, ScriptedModel, durable, tool
from countersign.models import calls
from countersign.vended_interventions.steering import LLMSteeringHandler


def trace(label):
    with open(os.environ["TRACE"], "a") as file:
        file.write(label + "\\n")


@tool
def delete(path: str) -> str:
    """Delete."""
    trace(f"deleted-{path}")
    return "deleted"


def judge(scene):
    trace("judged")
    shown = json.loads(scene.prompt.split("\\n\\n", 1)[1])
    if "answer" in shown:
        decision = "proceed" if "please" in shown["answer"] else "guide"
        return calls(("verdict", {"decision": decision, "feedback": "say please"}))
    decision = {"/backup": "confirm", "/prod": "guide"}.get(shown["call"]["input"]["path"], "proceed")
    return calls(("verdict", {"decision": decision, "feedback": "by the rules"}))


def script(scene):
    if len(scene.messages) == 1:
        return calls(*(("delete", {"path": path}) for path in scene.prompt.split()))
    return "done, please" if "say please" in scene.prompt else "done"


@durable("steered")
def steered() -> Agent:
    handler = LLMSteeringHandler("Not in production.", model=ScriptedModel(judge), after_model=True)
    return Agent(ScriptedModel(script), tools=[delete], interventions=[handler])
'''

ALICE = {"principal": {"type": "User", "id": "alice"}}


@pytest.fixture
def traces(lab, monkeypatch):
    """What the agents did, in order."""
    file = lab.folder / "trace"
    monkeypatch.setenv("TRACE", str(file))
    lab.package("vended", cedar=CEDAR_AGENTS, steering=STEERING_AGENTS)
    (lab.folder / "vended" / "agent.cedar").write_text(POLICY)
    return lambda: file.read_text().split() if file.exists() else []


async def results(session):
    """The texts of the tool results in the conversation."""
    messages = await history(session)
    blocks = [block for message in messages for block in message["content"]]
    return [block["toolResult"]["content"][0]["text"] for block in blocks if "toolResult" in block]


async def activities(lab, session, cycles):
    """The kinds of activities in a session's cycles."""
    found = set()
    for number in range(1, cycles + 1):
        for event in (await lab.history_of(f"{session.id}/cycle-{number}")).events:
            kind = event.activity_task_scheduled_event_attributes.activity_type.name
            found |= {kind} if kind else set()
    return found


async def test_policies_permit_ask_and_forbid_across_a_crash(lab, traces):
    """The worker is killed between question and answer; decisions are made in the cycle, without a step."""
    worker = lab.worker("vended.cedar")
    session = await lab.start(worker, "payer", "50 200 2000", invocation_state=ALICE)
    [question] = await questions(session, 1)
    assert "(large: over 100)" in question.reason and question.calls[0].input == {"amount": 200}
    worker.restart()
    await session.answer((question.id, "y"))
    await session.result()
    assert traces() == ["paid-50", "paid-200"]
    assert "Access denied by Cedar policy: large, never" in (await results(session))[2]
    assert STEP_ACTIVITY not in await activities(lab, session, 2)


async def test_without_a_principal_nothing_runs(lab, traces):
    """Whoever starts a session says who acts, or nobody acts."""
    worker = lab.worker("vended.cedar")
    for state in ({}, {"principal": {"type": "User", "id": "mallory"}}):
        session = await lab.start(worker, "payer", "50", invocation_state=state)
        await session.result()
        assert (await results(session))[0].startswith("DENIED: Access denied")
    assert traces() == []


async def test_a_changed_policy_counts_from_the_next_start_on_for_waiting_sessions_too(lab, traces):
    """An edit under a running worker changes nothing; after a deployment an approved call is judged anew."""
    worker = lab.worker("vended.cedar")
    waiting = await lab.start(worker, "payer", "200", invocation_state=ALICE)
    [question] = await questions(waiting, 1)
    (lab.folder / "vended" / "agent.cedar").write_text("forbid(principal, action, resource);")
    session = await lab.start(worker, "payer", "50", invocation_state=ALICE)
    await session.result()
    worker.restart()
    await waiting.answer((question.id, "y"))
    await waiting.result()
    assert traces() == ["paid-50"]
    assert "policy0 (line 1)" in (await results(waiting))[0]


async def test_a_principal_is_looked_up_in_a_step(lab, traces):
    """A directory is I/O; the step's result is recorded."""
    (lab.folder / "trace.directory").write_text("alice")
    session = await lab.start(lab.worker("vended.cedar"), "looked-up", "50")
    await session.result()
    assert traces() == ["paid-50"]
    assert STEP_ACTIVITY in await activities(lab, session, 1)


async def test_a_resolver_that_reads_the_clock_fails_the_turn(lab, traces):
    """Loudly, and not as a denial: it is policy code like any other."""
    session = await lab.start(lab.worker("vended.cedar"), "reaching", "50")
    with pytest.raises(AgentRunError, match=r"CedarAuthorization\.before_tool_call called time\.time.*@step"):
        await session.result()
    assert traces() == []


async def test_a_judge_is_heard_once_across_a_crash(lab, traces):
    """One call runs, one is guided, one waits for a person; the worker is killed, and all verdicts stand."""
    worker = lab.worker("vended.steering")
    session = await lab.start(worker, "steered", "/tmp /prod /backup")
    [question] = await questions(session, 1)
    assert question.reason == 'Tool "delete" requires human approval (by the rules). Input: {"path": "/backup"}'
    assert traces().count("judged") == 3
    worker.restart()
    await session.answer((question.id, "y"))
    result = await session.result()
    assert [line for line in traces() if line != "judged"] == ["deleted-/tmp", "deleted-/backup"]
    assert (await results(session))[1] == "GUIDANCE: [countersign:steering] by the rules"
    assert result.message["content"][0]["text"] == "done, please"
    assert traces().count("judged") == 5, "three calls, and the answer twice"
