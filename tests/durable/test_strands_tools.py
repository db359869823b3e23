"""Tools of Strands on a worker: activities under their own names, policed modules, questions from their bodies."""

from tests.durable.test_waiting import questions

AGENTS = '''
import strands
from strands_tools import calculator

from countersign import Agent, ScriptedModel, durable
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls


@strands.tool(context=True)
def wipe(disk: str, tool_context: strands.ToolContext, passes: int = 3) -> str:
    """Wipe a disk."""
    answer = tool_context.interrupt("wipe", reason=disk)
    return f"{disk} {passes} {answer!r}"


def ask(event: BeforeToolCallEvent) -> None:
    if event.interrupt("ok?") != "y":
        event.cancel_tool = "no"


@durable("mixed")
def mixed() -> Agent:
    script = [calls(("calculator", {"expression": "6 * 7"}), ("wipe", {"disk": "sda"})), "done"]
    return Agent(ScriptedModel(script), tools=[calculator, wipe], hooks=[ask])
'''


async def test_tools_of_strands_are_activities_and_their_bodies_may_ask(lab):
    """Gated like ours, with the input that will run; null is an answer; each runs under its own name."""
    lab.package("borrowed", agents=AGENTS)
    worker = lab.worker("borrowed.agents")
    session = await lab.start(worker, "mixed", "go")
    first, second = await questions(session, 2)
    assert first.calls[0].input["expression"] == "6 * 7"
    assert second.calls[0].input == {"disk": "sda", "passes": 3}
    await session.answer([(first.id, "y"), (second.id, "y")])
    [body] = await questions(session, 1)
    assert (body.name, body.reason) == ("wipe", "sda")
    await session.answer((body.id, None))
    await session.result()
    texts = [str(message["content"]) async for message in session.transcript()]
    assert "42" in texts[2]
    assert "sda 3 None" in texts[2]
    events = (await lab.history_of(f"{session.id}/cycle-2")).events
    kinds = {event.activity_task_scheduled_event_attributes.activity_type.name for event in events}
    assert {"calculator", "wipe"} <= kinds
