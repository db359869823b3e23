"""What a cycle leaves can't wedge its session, whatever it is."""

import uuid

import pytest
from temporalio import activity, workflow
from temporalio.worker import Worker
from tests.crash.histories import failed_tasks

from countersign.activities.registry import activities_for
from countersign.activities.segments import Segments
from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.wire import CYCLE_WORKFLOW, READ_CYCLE_ACTIVITY, SEARCH_ATTRIBUTES_ACTIVITY
from countersign.client import AgentClient
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.session import AgentSession

AGENTS = '''
from countersign import Agent, ScriptedModel, durable
from countersign.hooks import AfterInvocationEvent


def go_on(event: AfterInvocationEvent) -> None:
    if len(event.agent.messages) < 4:
        event.resume = {"text": "go on"}


@durable("slip")
def slip() -> Agent:
    """Its hook goes on with a block where a list of them belongs; in later turns it does not."""
    return Agent(ScriptedModel(lambda scene: "said"), hooks=[go_on])
'''


@workflow.defn(name=CYCLE_WORKFLOW, sandboxed=False)
class Nonsense:
    """A cycle of other code than this project's."""

    @workflow.run
    async def run(self, *given: object) -> object:
        """Leave something that is no outcome."""
        return {"stop_reason": 5, "messages": "none"}


async def test_a_hook_that_goes_on_with_nonsense_fails_its_turn_by_name(lab):
    """The session takes the next prompt."""
    lab.package("slip", agents=AGENTS)
    session = await lab.start(lab.worker("slip.agents"), "slip", "hi", lifetime="open")
    result = await session.invoke("again")
    assert result.stop_reason in ("end_turn", "failed")
    ended = [line.detail for line in await session.audit() if line.event == "turn_failed"]
    assert "event.resume" in str(ended[0])
    assert (await session.invoke("third")).stop_reason == "end_turn"


@pytest.mark.parametrize("result", [None, {}, "done", ["a"], [5]], ids=str)
async def test_activities_of_a_session_that_are_completed_by_hand_do_not_wedge_it(client, result):
    """What cannot be read of a failed cycle counts as lost; without the names of search attributes it shows none."""

    @activity.defn(name=READ_CYCLE_ACTIVITY)
    async def read_cycle(*_: object) -> object:
        return result

    @activity.defn(name=SEARCH_ATTRIBUTES_ACTIVITY)
    async def existing() -> object:
        return result

    queue = f"by-hand-{uuid.uuid4().hex[:8]}"
    async with Worker(
        client, task_queue=queue, workflows=[AgentSession, Nonsense], activities=[read_cycle, existing],
        interceptors=[IntakeGuard()],
    ):  # fmt: skip
        session = await AgentClient(client, task_queue=queue).start("any", "hi")
        with pytest.raises(AgentRunError, match="its history can't be read"):
            await session.result()
    assert await failed_tasks(client, session.id) == []


async def test_an_outcome_that_is_none_counts_as_a_failed_cycle(client):
    """After three of them the turn fails and says why; no workflow task does."""
    queue = f"nonsense-{uuid.uuid4().hex[:8]}"
    work = {"workflows": [AgentSession, Nonsense], "activities": activities_for({}, queue, Segments())}
    async with Worker(client, task_queue=queue, interceptors=[IntakeGuard()], **work):
        session = await AgentClient(client, task_queue=queue).start("any", "hi")
        with pytest.raises(AgentRunError, match="its outcome can't be read"):
            await session.result()
