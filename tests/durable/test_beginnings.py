"""What a factory builds its agent with, messages and state, is what a session on a worker begins with."""

from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions, until_status

from countersign.agent_core.messages import history_faults

AGENTS = '''
import time
from pathlib import Path

from countersign import Agent, ScriptedModel, ToolContext, durable, tool
from countersign.models import calls

EARLIER = [{"role": "user", "content": [{"text": "earlier"}]}, {"role": "assistant", "content": [{"text": "yes"}]}]


@tool(context=True)
def spend(tool_context: ToolContext, log: str) -> str:
    """Spend one of the budget, once the test lets go."""
    state = tool_context.agent.state
    left = state.get("budget") - 1
    with Path(log).open("a") as file:
        file.write(f"left-{left}\\n")
    while not Path(log + ".go").exists():
        time.sleep(0.02)
    state.set("budget", left)
    return f"{left} left"


def script(scene):
    if len(scene.turn) > 1:
        return f"{len(scene.messages)} messages"
    return calls(("spend", {"log": scene.prompt}))


@durable("spender")
def spender() -> Agent:
    return Agent(ScriptedModel(script), tools=[spend], messages=EARLIER, state={"budget": 5, "unit": "EUR"})
'''


async def test_a_session_begins_with_its_factorys_messages_and_state(lab):
    """Once: later turns, cycles that share a workflow and runs go on from what the turn before has left."""
    lab.package("spender", agents=AGENTS)
    lab.let_go()
    prompt, options = str(lab.effects_file), {"lifetime": "open", "continue_after_events": 8}
    session = await lab.start(lab.worker("spender.agents"), "spender", prompt, **options)
    await until_status(session, "idle")
    result = await session.invoke(prompt)
    assert result.state == {"budget": 3, "unit": "EUR"}
    assert result.message["content"][0]["text"] == "9 messages"
    assert [message["content"][0].get("text") for message in (await history(session))[:3]] == ["earlier", "yes", prompt]
    begun = (await lab.history_of(session.id)).events[0].workflow_execution_started_event_attributes
    assert begun.continued_execution_run_id, "the session has not been continued as new"
    assert lab.effects() == ["left-4", "left-3"]
    await session.close()


async def test_a_first_cycle_that_is_terminated_does_not_lose_them(lab, client):
    """The next one has them, behind them what was finished."""
    lab.package("spender", agents=AGENTS)
    prompt = str(lab.effects_file)
    session = await lab.start(lab.worker("spender.agents"), "spender", prompt)
    await until_effects(lab, "left-4")
    await client.get_workflow_handle(f"{session.id}/cycle-1").terminate()
    [question] = await questions(session, 1)
    lab.let_go()
    await session.answer((question.id, "retry"))
    result = await session.result()
    assert result.state == {"budget": 4, "unit": "EUR"}
    messages = await history(session)
    assert [message["content"][0].get("text") for message in messages[:3]] == ["earlier", "yes", prompt]
    assert history_faults(messages) == []
