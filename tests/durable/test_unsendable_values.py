"""Values that can be written and never read again: an error of the code that wrote them, and of no session."""

from countersign.agent_client.errors import AgentRunError

AGENTS = """
from countersign import Agent, ScriptedModel, ToolContext, durable, step, tool
from countersign.hooks import BeforeToolCallEvent, BeforeToolsEvent, HookProvider
from countersign.models import calls

HUGE = 10**5000


def nest(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@tool(context=True)
def note(tool_context: ToolContext, what: str) -> str:
    '''Note it.'''
    if what == "state of a tool":
        tool_context.agent.state.set("kept", HUGE)
    return HUGE if what == "result" else what


@step
async def count() -> int:
    return HUGE


class Careless(HookProvider):
    kept = None

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeToolsEvent, self.before)
        registry.add_callback(BeforeToolCallEvent, self.call)

    async def before(self, event):
        what = event.message["content"][0]["toolUse"]["input"]["what"]
        if what == "deep attribute":
            self.kept = nest(198)
        if what == "huge attribute":
            self.kept = HUGE
        if what == "deep":
            event.invocation_state["x"] = nest(199)
        if what == "huge":
            event.invocation_state["x"] = {"y": HUGE}
        if what == "object":
            event.invocation_state["x"] = object()
        if what == "key":
            event.invocation_state[1] = 2
        if what == "state":
            event.agent.state.set("kept", HUGE)
        if what == "step":
            await count()

    def call(self, event):
        if event.tool_use["input"]["what"] == "input":
            event.tool_use["input"]["what"] = HUGE
        if event.tool_use["input"]["what"] == "deep input":
            event.tool_use["input"]["what"] = nest(230)


def act(scene):
    if len(scene.turn) > 1:
        return "done"
    return calls(("note", {"what": scene.prompt}))


@durable("careless")
def careless() -> Agent:
    return Agent(ScriptedModel(act), tools=[note], hooks=[Careless()])
"""

FAULTS = {
    "deep attribute": "Careless.kept is nested more than 100 levels",
    "huge attribute": "Careless.kept is an integer of more than 4,300 digits",
    "deep": "invocation_state is nested more than 100 levels",
    "huge": "invocation_state.x.y is an integer of more than 4,300 digits",
    "object": "invocation_state.x is of type object",
    "key": "invocation_state has the key 1",
    "state": "agent.state['kept'] is an integer",
    "step": "the result of step",
    "input": "is an integer of more than 4,300 digits",
    "deep input": "is nested more than 100 levels",
    "state of a tool": "agent.state['kept'] is an integer",
    "result": "ran, but its result can't be shown",
}


async def test_a_value_that_nobody_could_read_is_an_error_of_who_wrote_it(lab):
    """By its name, in that very turn; the session takes the next prompt, and goes on in new runs."""
    lab.package("careless", agents=AGENTS)
    worker = lab.worker("careless.agents")
    session = await lab.start(worker, "careless", "nothing", lifetime="open", continue_after_events=5)
    for prompt, fault in FAULTS.items():
        try:
            await session.invoke(prompt)
            said = ""
        except AgentRunError as error:
            said = str(error)
        shown = [message async for message in session.transcript()]
        assert fault in f"{said} {shown[-4:]}", prompt
    assert (await session.invoke("fine")).stop_reason == "end_turn"
    assert not [line for line in await session.audit() if line.event == "cycle_failed"]
