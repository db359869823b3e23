"""A hook that goes on with a prompt of its own (`AfterInvocationEvent.resume`), on a worker."""

import asyncio

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
