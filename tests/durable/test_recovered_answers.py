"""A cycle that is terminated while policy is at work: what it had done is held to that policy all the same."""

import asyncio

from temporalio.api.enums.v1 import EventType
from tests.durable.test_cold_updates import until_event
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import history, questions

AGENTS = '''
import asyncio
from datetime import timedelta
from pathlib import Path

from countersign import Agent, ScriptedModel, durable, step, tool
from countersign.hooks import AfterModelCallEvent, BeforeInvocationEvent
from countersign.models import calls


def note(log: str, line: str) -> None:
    with open(log, "a") as file:
        file.write(line + "\\n")


@tool
def quick(log: str, label: str) -> str:
    """Quick."""
    note(log, label)
    return "did " + label


@tool
async def slow(log: str) -> str:
    """Slow."""
    note(log, "slow-began")
    await asyncio.sleep(300)
    return "slow"


@step(timeout=timedelta(minutes=2))
async def judged(log: str, text: str) -> str:
    note(log, "judging")
    if len(Path(log).read_text().split()) == 1:
        await asyncio.sleep(100)
    return text.replace("SECRET", "***")


def drop(event: AfterModelCallEvent) -> None:
    if event.stop_response is not None:
        message = event.stop_response.message
        message["content"] = [block for block in message["content"] if "forbidden" not in str(block)]


def redact(event: BeforeInvocationEvent) -> None:
    for message in event.messages or []:
        for block in message["content"]:
            block["text"] = block["text"].replace("4711", "****")


async def moderate(event: AfterModelCallEvent) -> None:
    if event.stop_response is not None:
        block = event.stop_response.message["content"][0]
        block["text"] = await judged(event.invocation_state["log"], block["text"])


def three(scene):
    if len(scene.turn) > 1:
        return "done"
    labels = [("quick", {"log": scene.prompt, "label": label}) for label in ("forbidden", "allowed")]
    return calls(*labels, ("slow", {"log": scene.prompt}))


@durable("dropping")
def dropping() -> Agent:
    return Agent(ScriptedModel(three), tools=[quick, slow], hooks=[drop])


@durable("moderated")
def moderated() -> Agent:
    return Agent(ScriptedModel(lambda scene: f"SECRET {scene.call}"), hooks=[redact, moderate])
'''


async def test_calls_that_a_hook_took_out_stay_out(lab, client):
    """What ran keeps its own result, and the question is about the call that may have run."""
    lab.package("policies", agents=AGENTS)
    session = await lab.start(lab.worker("policies.agents"), "dropping", str(lab.effects_file), lifetime="open")
    await until_effects(lab, "allowed", "slow-began")
    completed, cycle = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, f"{session.id}/cycle-1"
    model = await until_event(client, cycle, completed)
    await until_event(client, cycle, completed, model)  # an effect is there before the server knows of it
    await client.get_workflow_handle(f"{session.id}/cycle-1").terminate(reason="a test")
    [question] = await questions(session, 1)
    assert (question.name, question.calls[0].tool) == ("unknown-outcome", "slow")
    await session.answer((question.id, "skip"))
    async with asyncio.timeout(60):
        while (await session.status())["status"] != "idle":
            await asyncio.sleep(0.1)
    assert sorted(lab.effects()) == ["allowed", "slow-began"]
    assert "forbidden" not in str(await history(session))


async def test_moderation_that_hung_is_not_left_out(lab, client):
    """The answer is moderated by the next cycle, the model is not asked again, and the prompt stays redacted."""
    lab.package("policies", agents=AGENTS)
    options = {"lifetime": "open", "invocation_state": {"log": str(lab.effects_file)}}
    session = await lab.start(lab.worker("policies.agents"), "moderated", "my pin is 4711", **options)
    await until_effects(lab, "judging")
    await client.get_workflow_handle(f"{session.id}/cycle-1").terminate(reason="a test")
    async with asyncio.timeout(60):
        while (await session.status())["status"] != "idle":
            await asyncio.sleep(0.1)
    texts = [message["content"][0]["text"] for message in await history(session)]
    assert texts == ["my pin is ****", "*** 0"]
