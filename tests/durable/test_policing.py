"""Hooks that reach for the clock, chance, files or the network fail their turn by name; the session lives on."""

import pytest

from countersign.agent_client.errors import AgentRunError

CALLS = {
    "time.time": "import time\ndef reach():\n    return time.time()\n",
    "random.random": "import random\ndef reach():\n    return random.random()\n",
    "uuid.uuid4": "import uuid\ndef reach():\n    return str(uuid.uuid4())\n",
    "open": "def reach():\n    return open('/etc/hostname').read()\n",
    "socket": "import socket\ndef reach():\n    return socket.socket().fileno()\n",
}

AGENT = """
from countersign import Agent, ScriptedModel, durable, step
from countersign.hooks import BeforeModelCallEvent
from countersign.interventions import InterventionHandler, Proceed
{imports}
{body}

def reaching(event: BeforeModelCallEvent) -> None:
    if "reach" in event.agent.messages[-1]["content"][0]["text"]:
        event.agent.state.set("got", reach())

@durable("reaching")
def reaching_agent() -> Agent:
    return Agent(model=ScriptedModel(lambda scene: "fine"), hooks=[reaching])
"""


@pytest.mark.parametrize("place", ["agents", "helper"])
async def test_a_reaching_hook_fails_its_turn_and_the_session_goes_on(lab, place):
    """In the agent module and in a module beside it: the error names hook, call and way out."""
    names = list(CALLS)
    for number, name in enumerate(names):
        body = CALLS[name]
        if place == "agents":
            modules = {"agents": AGENT.format(imports="", body=body)}
        else:
            modules = {
                "agents": AGENT.format(imports=f"from reach{number}.beside import reach", body=""),
                "beside": body,
            }
        lab.package(
            f"reach{number}",
            **{key: value.replace('"reaching"', f'"reaching-{number}"') for key, value in modules.items()},
        )
    worker = lab.worker(",".join(f"reach{number}.agents" for number in range(len(names))))
    for number, name in enumerate(names):
        session = await lab.start(worker, f"reaching-{number}", "hello", lifetime="open")
        with pytest.raises(AgentRunError) as failed:
            await session.invoke("reach out")
        text = str(failed.value)
        assert "reaching" in text and name in text and "@step" in text, text
        result = await session.invoke("hello again")
        assert result.message["content"][0]["text"] == "fine"
        await session.close()


STEPPING = '''
from pathlib import Path
from countersign import Agent, ScriptedModel, durable, step, tool
from countersign.interventions import Deny, InterventionHandler, Proceed
from countersign.models import calls

@step
async def allowed(log: str, name: str) -> bool:
    with Path(log).open("a") as file:
        file.write(f"step-{name}\\n")
    return name != "forbidden"

@tool
def effect(log: str, name: str) -> str:
    """Do it."""
    with Path(log).open("a") as file:
        file.write(f"{name}\\n")
    return "did it"

class Auth(InterventionHandler):
    name = "auth"

    async def before_tool_call(self, event):
        value = event.tool_use["input"]
        return Proceed() if await allowed(value["log"], value["name"]) else Deny(reason="not allowed")

def script(scene):
    if len(scene.turn) > 1:
        return "; ".join(b["toolResult"]["content"][0]["text"] for b in scene.messages[-1]["content"])
    return calls(*(("effect", {"log": scene.prompt, "name": name}) for name in ("fine", "forbidden")))

@durable("stepping")
def stepping() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[effect], interventions=[Auth()])
'''


async def test_a_handler_does_its_io_in_a_step(lab):
    """The way out works: each step runs once, as an activity, and its result decides."""
    lab.package("stepping", agents=STEPPING)
    worker = lab.worker("stepping.agents")
    session = await lab.start(worker, "stepping", str(lab.effects_file))
    result = await session.result()
    assert result.message["content"][0]["text"] == "did it; DENIED: not allowed"
    assert lab.effects() == ["step-fine", "step-forbidden", "fine"]


ESCAPING = """
import contextvars
from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeModelCallEvent
from countersign.models import calls

LOG = {log!r}

@tool
def pay(to: str) -> str:
    \"\"\"Pay.\"\"\"
    with open(LOG, "a") as file:
        file.write(to)
    return "paid"

def escaping(event: BeforeModelCallEvent) -> None:
    contextvars.Context().run({escape})

@durable("escaping-{number}")
def escaping_agent() -> Agent:
    return Agent(model=ScriptedModel([calls(("pay", {{"to": "Bob"}})), "done"]), tools=[pay], hooks=[escaping])
"""

ESCAPES = ('lambda: event.agent.tool.pay(to="Bob")', 'lambda: event.agent("go")')


async def test_a_context_of_its_own_is_no_way_out_of_a_worker(lab):
    """A hook can neither call a tool nor run its agent there: it would happen again on each replay, unrecorded."""
    log = lab.folder / "paid"
    for number, escape in enumerate(ESCAPES):
        lab.package(f"escape{number}", agents=ESCAPING.format(log=str(log), escape=escape, number=number))
    worker = lab.worker(",".join(f"escape{number}.agents" for number in range(len(ESCAPES))))
    for number in range(len(ESCAPES)):
        session = await lab.start(worker, f"escaping-{number}", "go")
        with pytest.raises(AgentRunError, match=r"PolicyViolationError: .*@step"):
            await session.result()
    assert not log.exists()
