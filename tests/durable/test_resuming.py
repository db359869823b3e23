"""Which turn an `invoke` waits for: a hook goes on (`AfterInvocationEvent.resume`), or a turn before it asks."""

import asyncio

from tests.durable.test_floods import until_queued
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import questions

AGENTS = '''
from countersign import Agent, ScriptedModel, durable
from countersign.hooks import AfterInvocationEvent


def once_more(event: AfterInvocationEvent) -> None:
    said = event.agent.messages[-1]["content"][0]["text"]
    if not said.endswith("again"):
        event.resume = f"{said} again"


@durable("thorough")
def thorough() -> Agent:
    """Says what it is told, and then once more."""
    return Agent(ScriptedModel(lambda scene: scene.prompt), hooks=[once_more])
'''


async def test_a_hook_that_goes_on_stays_in_the_turn(lab):
    """Whoever invoked gets the last message, and whoever invoked behind them waits for their own turn."""
    lab.package("thorough", agents=AGENTS)
    worker = lab.worker("thorough.agents")
    session = await lab.start(worker, "thorough", "zero", lifetime="open")
    first, second = await asyncio.gather(session.invoke("one"), session.invoke("two"))
    assert {first.turn, second.turn} == {2, 3}
    assert first.message["content"][0]["text"] == "one again"
    assert second.message["content"][0]["text"] == "two again"
    once = await lab.start(worker, "thorough", "only")
    assert (await once.result()).message["content"][0]["text"] == "only again"


async def test_an_invoke_behind_a_turn_that_asks_says_what_is_asked(lab, client):
    """Nothing of it is cancelled: its prompt runs once the questions are answered, and its turn can be waited for."""
    log = lab.effects_file
    session = await lab.start(lab.worker(), "free", f"effects={log} held:a asks_twice:b", lifetime="open")
    await until_effects(lab, "a-began")
    invoking = asyncio.create_task(session.invoke(f"effects={log} effect:c"))
    await until_queued(session, 1)
    lab.let_go()
    behind = await invoking
    assert (behind.stop_reason, behind.turn, len(behind.interrupts)) == ("interrupt", 2, 1)
    await session.answer((behind.interrupts[0].id, "one"))
    [second] = await questions(session, 1)
    await session.answer((second.id, "two"))
    own = await client.get_workflow_handle(session.id).execute_update("invoke", {"turn": behind.turn})
    assert (own["stop_reason"], own["turn"]) == ("end_turn", 2)
    assert lab.effects().count("c") == 1
    await session.close()
