"""Deliberate differences in what makes an agent and its tools."""

from collections.abc import Callable
from typing import Any

from tests.differential.difference import Difference, results, texts
from tests.differential.running import Scenario
from tests.differential.sdk import World

from countersign.models import calls

ONE = [calls(("act", {"x": 1})), "done"]


def _made(make: Callable[[World], Any]) -> Callable[[World], Any]:
    """The agent; or, if there can't be one, an agent whose words are why."""

    def build(world: World) -> Any:
        try:
            return make(world)
        except Exception as error:
            return world.agent([type(error).__name__])

    return build


def _generator(world: World) -> Any:
    @world.sdk.tool
    def act(x: int) -> Any:
        """Act."""
        yield "it begins"
        yield "it ran"

    return world.agent(ONE, tools=[act])


FOUND = (
    Difference(
        name="a-body-runs-to-its-end",
        there="an `async def` under a plain decorator, or a plain generator, does not run, and its call is a success",
        here="what a function returns is awaited or drained; the last value of a generator is the result",
        rule="a success has run",
        scenario=Scenario("a generator", _generator),
        look=lambda trace: [(status, text.split(" at ")[0]) for status, text in results(trace)],
        shows_there=[("success", "<generator object _generator.<locals>.act")],
        shows_here=[("success", "it ran")],
    ),
    Difference(
        name="a-gate-has-its-tool",
        there='with `allowed_tools=["*", "!acts"]` the tool `act` runs unasked, though no tool is called `acts`',
        here='`AgentDefinitionError`: a "!name" that looks like a misspelt tool of the agent',
        rule="errors name the value",
        scenario=Scenario(
            "a misspelt gate",
            _made(lambda world: world.agent(ONE, handlers=[world.sdk.HumanInTheLoop(allowed_tools=["*", "!acts"])])),
        ),
        look=texts,
        shows_there=["go", "done"],
        shows_here=["go", "AgentDefinitionError"],
    ),
    Difference(
        name="a-handler-is-heard",
        there="a handler whose one method is a misspelt `before_tool_call` is taken",
        here="`AgentDefinitionError`",
        rule="errors name the value",
        scenario=Scenario(
            "a misspelt handler",
            _made(lambda world: world.agent(
                ONE, handlers=[world.handler("h", before_tool_calls=lambda event: world.sdk.Deny(reason="no"))]
            )),
        ),
        look=texts,
        shows_there=["go", "done"],
        shows_here=["go", "AgentDefinitionError"],
    ),
    Difference(
        name="a-system-prompt-is-text",
        there="a system prompt may have cache points between its text blocks",
        here="`AgentDefinitionError`: text, or text blocks; where prompts are cached is an option of the model",
        rule="not every vendor's model takes more",
        scenario=Scenario(
            "a cache point",
            _made(lambda world: world.agent(
                ["done"], system_prompt=[{"text": "be brief"}, {"cachePoint": {"type": "default"}}]
            )),
        ),
        look=texts,
        shows_there=["go", "done"],
        shows_here=["go", "AgentDefinitionError"],
    ),
)  # fmt: skip
