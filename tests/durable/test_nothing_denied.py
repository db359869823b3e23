"""That a call has run is never denied: not by results that are too large, not by a history that is gone."""

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions, until_status

from countersign.agent_core.messages import history_faults

AGENTS = '''
"""An agent that pays, once it may, and reads a lot."""

import time
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls

EFFECTS = Path("EFFECTS")


@tool
def fetch(number: int) -> str:
    """Read a lot."""
    with EFFECTS.open("a") as file:
        file.write(f"fetch{number}\\n")
    return "z" * 760_000


@tool
def pay(to: str, seconds: float = 0) -> str:
    """Pay."""
    with EFFECTS.open("a") as file:
        file.write(f"pay-{to}\\n")
    time.sleep(seconds)
    return "paid"


def gate(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "pay" and event.interrupt("may-i") != "y":
        event.cancel_tool = "no"


def reading(scene):
    done = sum("toolResult" in block for m in scene.turn for block in m["content"])
    if done in (1, 2):
        return calls(("fetch", {"number": done}))
    return "done" if done else calls(("pay", {"to": "Ada"}))


def both(scene):
    return calls(("fetch", {"number": 1}), ("fetch", {"number": 2})) if scene.call == 0 else "done"


@durable("reader")
def reader() -> Agent:
    return Agent(model=ScriptedModel(reading), tools=[fetch, pay], hooks=[gate])


@durable("greedy")
def greedy() -> Agent:
    return Agent(model=ScriptedModel(both), tools=[fetch, pay])


@durable("payer")
def payer() -> Agent:
    return Agent(model=ScriptedModel([calls(("pay", {"to": "Ada", "seconds": 90})), "done"]), tools=[pay], hooks=[gate])
'''


def served(lab):
    """A worker with these agents."""
    lab.package("nothing_denied", agents=AGENTS.replace('EFFECTS")', f'{lab.effects_file}")'))
    return lab.worker("nothing_denied.agents")


def results(messages):
    """Texts of the results in a conversation, in order."""
    found = [block["toolResult"] for m in messages for block in m["content"] if "toolResult" in block]
    return [result["content"][0]["text"] for result in found]


async def test_large_results_do_not_push_out_what_ran_before(lab):
    """An approved payment, then two results of 760 KB: the model sees that it paid."""
    worker = served(lab)
    session = await lab.start(worker, "reader", "go")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await session.outcome()
    paid, *_ = results(await history(session))
    assert paid == "paid"
    assert lab.effects()[0] == "pay-Ada"
    assert history_faults(await history(session)) == []


async def test_results_that_are_too_large_together_are_said_to_have_run(lab):
    """The largest make room; none is said not to have run."""
    worker = served(lab)
    session = await lab.start(worker, "greedy", "go")
    assert (await session.result()).stop_reason == "end_turn"
    texts = results(await history(session))
    assert sorted(lab.effects()) == ["fetch1", "fetch2"]
    assert all(text.startswith(("zzz", "The tool ran")) for text in texts)


async def test_a_call_of_a_cycle_whose_history_is_deleted_is_not_run_again(lab, client):
    """Nobody knows what it did: the turn fails, and says that the call may have run."""
    worker = served(lab)
    session = await lab.start(worker, "payer", "go", lifetime="open")
    [question] = await questions(session, 1)
    await session.answer((question.id, "y"))
    await until_effects(lab, "pay-Ada")
    cycle = WorkflowExecution(workflow_id=f"{session.id}/cycle-2")
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace="default", workflow_execution=cycle)
    )
    await until_status(session, "idle")
    assert lab.effects() == ["pay-Ada"]
    assert await session.interrupts() == []
    [text] = results(await history(session))
    assert "may have run" in text
    assert "look before you prompt again" in (await session.status())["error"]["message"]
