"""A policy package whose agents a deployment changes, each in another way, while sessions of them wait."""

SHOP = '''
import time
from pathlib import Path
from countersign import Agent, ScriptedModel, durable, step, tool
from countersign.hooks import BeforeModelCallEvent, BeforeToolCallEvent, HookProvider
from countersign.models import calls

@tool
def pay(log: str, seconds: float) -> str:
    """Pay."""
    with Path(log).open("a") as file:
        file.write("began\\n")
    time.sleep(seconds)
    return "paid"

@tool(name="pay")
def pay_why(log: str, seconds: float, why: str) -> str:
    """Pay, with a new parameter."""
    return why

@tool(name="pay")
def pay_perhaps_why(log: str, seconds: float, why: str = "") -> str:
    """Pay, with a new parameter that has a default."""
    return why

@step
async def may() -> bool:
    return True

def script(scene):
    if len(scene.turn) > 1:
        return "done"
    log, seconds = scene.prompt.split()
    return calls(("pay", {"log": log, "seconds": float(seconds)}))

class Counts(HookProvider):
    def __init__(self):
        self.start()

    def start(self):
        self.seen = 0

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeModelCallEvent, self.count)
        registry.add_callback(BeforeToolCallEvent, self.look)

    def count(self, event):
        self.seen += 1

    def look(self, event):
        pass

class Asks(Counts):
    def look(self, event):
        if event.interrupt("may-i") != "y":
            event.cancel_tool = "no"

class Inquires(Asks):
    pass

class Fixed(Asks):
    pass

class Looks(Counts):
    async def look(self, event):
        await may()
'''
READ_ONLY = """
class Fixed(Asks):
    seen = property(lambda self: 0)

    def start(self):
        pass
"""
AGENT = """
@durable("{name}")
def {name}() -> Agent:
    return Agent(model=ScriptedModel(script), tools=[{tools}], hooks=[{hooks}])
"""


def agent(name: str, tools: str = "pay", hooks: str = "Asks()") -> str:
    return AGENT.format(name=name, tools=tools, hooks=hooks)


CHANGES = {
    "another_hook": (agent("another_hook", hooks="Asks(), Looks()"), [], "paid"),
    "no_tool": (agent("no_tool", tools=""), ["tool-missing"], "Unknown tool: pay"),
    "parameter": (agent("parameter", tools="pay_why"), ["input-refused"], "does not fit its schema: why"),
    "default": (agent("default", tools="pay_perhaps_why"), ["asked-again"], None),
    "gone": ("", ["agent-missing"], "Not run"),
    "read_only": (READ_ONLY + agent("read_only", hooks="Fixed()"), ["handler-state"], "Not run: 3 cycles failed"),
    "renamed_hook": (agent("renamed_hook", hooks="Inquires()"), ["handler-unknown"], "paid"),
}
"""By agent: its source after the deployment, what `countersign replay` finds, and what becomes of an approved call:
words of its result, or None if a person is asked again."""

HARMLESS = {"asked-again", "handler-unknown"}

BEFORE = SHOP + "".join(agent(name, hooks="Fixed()" if name == "read_only" else "Asks()") for name in CHANGES)
AFTER = SHOP + "".join(source for source, _, _ in CHANGES.values())
