"""Durable steps on a worker: how their errors reach the policy that awaited them."""

AGENTS = """
import asyncio
from datetime import timedelta

from countersign import Agent, ScriptedModel, durable, step
from countersign.hooks import BeforeModelCallEvent


@step
async def forbidden() -> None:
    raise PermissionError("no way in")


@step(timeout=timedelta(milliseconds=200))
async def slow() -> None:
    await asyncio.sleep(60)


async def check(event: BeforeModelCallEvent) -> None:
    for name, one in (("forbidden", forbidden), ("slow", slow)):
        try:
            await one()
        except PermissionError as error:
            event.agent.state.set(name, f"caught {error}")
        except Exception as error:
            event.agent.state.set(name, f"{type(error).__name__}: {error}")


@durable("stepped")
def stepped() -> Agent:
    return Agent(ScriptedModel(["done"]), hooks=[check])
"""


async def test_a_policy_tells_the_errors_of_its_steps_apart(lab):
    """Python's own keep their class; one that takes too long is a StepError with its name, not one of the model."""
    lab.package("stepped", agents=AGENTS)
    session = await lab.start(lab.worker("stepped.agents"), "stepped", "go")
    state = (await session.result()).state
    assert state["forbidden"] == "caught no way in"
    assert state["slow"].startswith("StepError: step stepped.agents:slow did not end: ")
