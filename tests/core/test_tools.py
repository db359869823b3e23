"""Tools: schemas from signatures, canonical inputs, what bodies may see, and what comes back."""

import asyncio
import inspect
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
import strands
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, AnyUrl, BaseModel, Field
from tests.core.driving import results

from countersign import Agent, ScriptedModel, tool
from countersign.agent_core.interrupts import call_digest
from countersign.agent_core.json_values import canonical_json
from countersign.agent_core.tools.execution import RESULT_LIMIT_BYTES, as_result, execute
from countersign.agent_core.wire import ToolCall
from countersign.errors import AgentDefinitionError, ToolInputError
from countersign.models import calls
from countersign.types.tools import ToolContext


class Mode(Enum):
    SOFT = "soft"
    HARD = "hard"


class Target(BaseModel):
    host: str
    port: int = 22


@dataclass
class Window:
    begin: date
    hours: float = 1.5


@tool
def release(
    service: str,
    targets: list[Target],
    mode: Mode = Mode.SOFT,
    window: Window | None = None,
    level: Literal["low", "high"] = "low",
    note: Annotated[str, "Words for the log."] = "",
    retries: int = Field(default=2, ge=0, description="How often."),
) -> str:
    """Release a service.

    Takes a while.

    Args:
        service: Which one,
            by its full name.
        targets (list): Where to.

    Returns:
        A word.
    """
    return f"{service} {targets[0].port} {mode.name} {level} {retries} {window}"


SPEC = release.tool_spec
PROPERTIES = SPEC["inputSchema"]["json"]["properties"]


def test_names_and_descriptions():
    """Name, description and parameters come from the function; the Args section moves into the schema."""
    assert SPEC["name"] == "release"
    assert SPEC["description"].startswith("Release a service.\n\nTakes a while.")
    assert "Args:" not in SPEC["description"]
    found = {name: PROPERTIES[name]["description"] for name in ("service", "targets", "note", "retries")}
    assert found == {
        "service": "Which one, by its full name.",
        "targets": "Where to.",
        "note": "Words for the log.",
        "retries": "How often.",
    }


def test_required_and_defaults():
    """Parameters without a default are required; defaults stand in the schema."""
    assert SPEC["inputSchema"]["json"]["required"] == ["service", "targets"]
    assert PROPERTIES["retries"]["default"] == 2


def test_the_canonical_input_has_every_default():
    """What a person signs is complete, nested defaults too, and plain JSON."""
    assert release.canonical_input({"service": "web", "targets": [{"host": "a"}]}) == {
        "service": "web",
        "targets": [{"host": "a", "port": 22}],
        "mode": "soft",
        "window": None,
        "level": "low",
        "note": "",
        "retries": 2,
    }


@given(
    st.fixed_dictionaries(
        {"service": st.text(), "targets": st.lists(st.fixed_dictionaries({"host": st.text()}), min_size=1)},
        optional={
            "mode": st.sampled_from(["soft", "hard"]),
            "retries": st.integers(0, 10**12),
            "window": st.fixed_dictionaries(
                {"begin": st.dates().map(str)}, optional={"hours": st.floats(allow_nan=False, allow_infinity=False)}
            ),
        },
    )
)
def test_canonical_inputs_are_stable(raw):
    """Canonical of canonical is the same text, so that the digest holds wherever it is computed again."""
    once = release.canonical_input(raw)
    assert canonical_json(release.canonical_input(once)) == canonical_json(once)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({}, "service"),
        ({"service": "web", "targets": [{}]}, "targets.0.host"),
        ({"service": "web", "targets": [], "mode": "wild"}, "mode"),
        ({"service": "web", "targets": [], "retries": -1}, "retries"),
        ("text", "must be an object"),
        (None, "must be an object"),
        ({"service": "web", "targets": [], "note": "\ud800"}, "surrogate"),
    ],
)
def test_misfits_are_named(raw, named):
    """An input that does not fit is refused with the place of the misfit."""
    with pytest.raises(ToolInputError, match=named):
        release.canonical_input(raw)


def test_the_body_gets_the_annotated_types():
    """Models, dataclasses and enums arrive as themselves."""
    agent = Agent(
        ScriptedModel([calls(("release", {"service": "web", "targets": [{"host": "a"}], "mode": "hard"})), "done"]),
        tools=[release],
    )
    agent("go")
    assert results(agent) == [("success", "web 22 HARD low 2 None")]


def test_a_signature_without_names_is_refused():
    """*args and **kwargs can't be filled in by a model; the decorator says so."""
    for function in (lambda *rest: rest, lambda x, **options: x):
        with pytest.raises(AgentDefinitionError, match=r"parameter (rest|options) .* named parameters"):
            tool(function)


def test_a_tool_is_still_its_function():
    """Decorated functions can be called directly."""

    @tool
    def double(x: int) -> int:
        """Double."""
        return 2 * x

    assert double(4) == 8
    assert double.__doc__ == "Double."


def test_decorator_options():
    """Name, description and shown schema can be given."""

    @tool(name="other", description="Words.", inputSchema={"json": {"type": "object"}})
    def act(x: int) -> int:
        return x

    assert act.tool_spec == {"name": "other", "description": "Words.", "inputSchema": {"json": {"type": "object"}}}
    with pytest.raises(ToolInputError):
        act.canonical_input({"x": "many"})


def run_tool(*tools, call):
    agent = Agent(ScriptedModel([calls(call), "done"]), tools=list(tools), state={"who": "ann"})
    result = agent("go", ticket=7)
    return agent, result


@pytest.mark.parametrize("parameter", ["tool_context", "ctx"])
def test_context(parameter):
    """The context carries call, agent, state and invocation state, and is no part of the schema."""
    seen = {}

    if parameter == "ctx":

        @tool(context="ctx")
        def act(ctx: ToolContext, x: int = 1) -> str:
            seen["context"] = ctx
            ctx.agent.state.set("written", x)
            return "ok"

    else:

        @tool(context=True)
        def act(tool_context: ToolContext, x: int = 1) -> str:
            seen["context"] = tool_context
            tool_context.agent.state.set("written", x)
            return "ok"

    assert list(act.tool_spec["inputSchema"]["json"]["properties"]) == ["x"]
    agent, _ = run_tool(act, call=("act", {}))
    context = seen["context"]
    assert context.tool_use["input"] == {"x": 1}
    assert context.agent.state.get("who") == "ann"
    assert context.invocation_state["ticket"] == 7
    assert context.idempotency_key
    assert agent.state.get("written") == 1


def test_a_context_that_is_not_declared():
    """A context without its parameter is refused when the tool is decorated."""
    with pytest.raises(AgentDefinitionError, match="tool_context"):
        tool(context=True)(lambda x: x)


def named(x: int, tool_context):
    """The context by its name."""


def annotated(x: int, ctx: ToolContext | None = None):
    """The context by its type."""


def as_text(x: int, ctx: "ToolContext"):
    """The same where annotations are text."""


def of_strands(x: int, ctx: strands.ToolContext):
    """A tool that moves from Strands with its import left behind."""


@pytest.mark.parametrize(
    ("function", "way_out"),
    [(named, "context=True"), (annotated, "context='ctx'"), (as_text, "context='ctx'"), (of_strands, "context='ctx'")],
)
def test_a_context_that_nobody_would_fill_in(function, way_out):
    """The decorator says so, with what to write; `context` is what fills it in."""
    with pytest.raises(AgentDefinitionError, match=re.escape(f"@tool({way_out})")):
        tool(function)
    parameter = list(inspect.signature(function).parameters)[-1]
    assert list(tool(context=parameter)(function).compiled.model.model_fields) == ["x"]


def twice(ctx: ToolContext, other: ToolContext):
    """Two of them."""


def test_a_second_context_is_refused():
    """It would be for the model to fill in."""
    with pytest.raises(AgentDefinitionError, match="parameter ctx"):
        tool(context="other")(twice)


def test_bound_methods_keep_their_instances_apart():
    """Two instances' methods run on their own instance."""

    class Box:
        def __init__(self, content):
            self.content = content

        @tool
        def look(self) -> str:
            return self.content

    for content in ("a", "b"):
        agent, _ = run_tool(Box(content).look, call=("look", {}))
        assert results(agent) == [("success", content)]


@pytest.mark.parametrize(
    ("value", "status", "content"),
    [
        ("text", "success", [{"text": "text"}]),
        (None, "success", [{"text": "null"}]),
        (True, "success", [{"text": "true"}]),
        ({"a": [1, "ü"]}, "success", [{"text": '{"a": [1, "ü"]}'}]),
        (Target(host="a"), "success", [{"text": '{"host":"a","port":22}'}]),
        (date(2030, 1, 1), "success", [{"text": "2030-01-01"}]),
        ({"status": "error", "content": [{"json": {"a": 1}}]}, "error", [{"json": {"a": 1}}]),
        ({"status": "odd", "content": []}, "success", [{"text": '{"status": "odd", "content": []}'}]),
        ("\ud800", "success", [{"text": "?"}]),
    ],
)
def test_result_shapes(value, status, content):
    """Whatever a tool returns becomes a result that can be sent."""
    assert as_result("id", value) == {"toolUseId": "id", "status": status, "content": content}


def test_a_result_can_always_be_sent():
    """JSON that is not valid Unicode, or not JSON at all inside, still becomes text that can be encoded."""
    for value in ({"a": "\ud800"}, [float("nan")], {"status": "success", "content": [{"text": "\ud800"}]}, {1: {2}}):
        for part in as_result("id", value)["content"]:
            canonical_json(part).encode("utf-8")


def test_an_error_can_always_be_sent():
    """The same for what a tool raises."""

    @tool
    def act() -> str:
        raise FileNotFoundError("caf\udce9.txt")

    agent, _ = run_tool(act, call=("act", {}))
    assert results(agent) == [("error", "Error: FileNotFoundError - caf?.txt")]


def test_a_tool_that_raises():
    """The error's type and text reach the model; the loop goes on."""

    @tool
    def act() -> str:
        raise PermissionError("not yours")

    agent, result = run_tool(act, call=("act", {}))
    assert results(agent) == [("error", "Error: PermissionError - not yours")]
    assert result.stop_reason == "end_turn"


def test_an_oversize_result_says_so():
    """A result that can't be kept is an error that names size and limit; the call counts as run."""

    @tool
    def act() -> str:
        return "x" * (RESULT_LIMIT_BYTES + 1)

    agent, _ = run_tool(act, call=("act", {}))
    ((status, text),) = results(agent)
    assert status == "error"
    assert "The tool ran" in text
    assert "1,000,000 bytes" in text


def test_an_oversize_error_says_so():
    """An exception with a huge text can't break the turn either."""

    @tool
    def act() -> str:
        raise ValueError("x" * (RESULT_LIMIT_BYTES + 1))

    agent, _ = run_tool(act, call=("act", {}))
    assert "PayloadTooLargeError" in results(agent)[0][1]


async def test_a_call_that_was_not_signed_does_not_start():
    """The executor computes the digest of what it received and runs nothing else."""
    ran = []

    @tool
    def act(x: int) -> None:
        ran.append(x)

    async def here(function):
        return function()

    call = ToolCall(agent="a", session_id="s", cycle=1, index=0, tool="act", tool_use_id="t", input={"x": 2},
                    digest=call_digest("act", {"x": 1}), idempotency_key="k")  # fmt: skip
    outcome = await execute(act, call, in_thread=here, heartbeat=lambda: None, clock=time.monotonic)
    assert (outcome.kind, ran) == ("never_started", [])


def test_two_tools_of_one_name():
    """Names must be unique; the error says how."""

    @tool(name="same")
    def one() -> None: ...

    @tool(name="same")
    def two() -> None: ...

    with pytest.raises(AgentDefinitionError, match="same"):
        Agent(tools=[one, two])


def test_what_is_not_a_tool():
    """A plain function is refused with the remedy."""
    with pytest.raises(AgentDefinitionError, match="@tool"):
        Agent(tools=[lambda x: x])


def test_a_parameter_whose_default_is_none_may_be_none():
    """`x: str = None` is how people write it; what was filled in once is valid again."""

    @tool
    def find(name: str = None) -> str:  # noqa: RUF013 (as people write it)
        """Find."""
        return f"found {name}"

    filled = find.canonical_input({})
    assert filled == find.canonical_input(filled) == {"name": None}


def test_an_input_that_reads_as_another_one_than_it_shows_is_refused():
    """A validator that turns its own output into something else: what is signed would not be what runs."""

    def to_cents(value):
        return value * 100

    @tool
    def pay(amount: Annotated[int, AfterValidator(to_cents)]) -> int:
        """Pay."""
        return amount

    with pytest.raises(ToolInputError, match=r"validated again it would be .*50000.* instead of .*500"):
        pay.canonical_input({"amount": 5})


class Hidden(BaseModel):
    """A value that no one is shown."""

    force: bool = Field(default=True, exclude=True)


def test_a_field_that_is_left_out_when_written_makes_no_tool():
    """A value would run that nobody is shown."""

    @tool
    def purge(options: Hidden) -> None:
        """Purge."""

    with pytest.raises(AgentDefinitionError, match="exclude=True"):
        assert purge.tool_spec


def test_a_default_that_json_does_not_know_is_an_error_for_the_model():
    """The call is refused by name, and the turn goes on."""

    @tool
    def wait(seconds: float = math.inf) -> None:
        """Wait."""

    with pytest.raises(ToolInputError, match="inf"):
        wait.canonical_input({})


def test_a_default_is_shown_as_it_will_be():
    """Validated like any other value."""

    @tool
    def fetch(url: AnyUrl = "http://example.com") -> str:  # type: ignore[assignment]  # as people write it
        """Fetch."""
        return str(url)

    assert fetch.canonical_input({}) == {"url": "http://example.com/"}


def test_an_iterator_reaches_the_tool_unread():
    """Looking at what would run does not use it up."""

    @tool
    def add_up(numbers: Iterable[int]) -> int:
        """Add up."""
        return sum(numbers)

    agent = Agent(ScriptedModel([calls(("add_up", {"numbers": [1, 2, 3]})), "done"]), tools=[add_up])
    agent("go")
    assert results(agent) == [("success", "6")]


def test_a_parameter_called_agent_gets_the_agent():
    """As in Strands; the model is not told of it."""

    @tool
    def count(step: int, agent: Any) -> str:
        """Count."""
        agent.state.set("count", (agent.state.get("count") or 0) + step)
        return agent.name

    agent = Agent(ScriptedModel([calls(("count", {"step": 2})), "done"]), tools=[count], name="counter")
    agent("go")
    assert (results(agent), agent.state.get("count")) == ([("success", "counter")], 2)
    assert list(count.tool_spec["inputSchema"]["json"]["properties"]) == ["step"]


@pytest.mark.parametrize(
    "options", [{"queue": ""}, {"queue": "two words"}, {"queue": "-x"}, {"queue": "x" * 201}, {"queue": 3}]
)
def test_a_queue_that_no_worker_could_serve_is_refused(options):
    """Where it is declared, by its value; else its calls would wait in vain."""
    with pytest.raises(AgentDefinitionError, match="a task queue has 1 to 200 letters"):
        tool(**options)


@pytest.mark.parametrize("options", [{}, {"queue": "payments"}])
def test_a_time_to_wait_needs_a_queue_and_a_length(options):
    """`queue_timeout` without a queue would mean nothing, and zero would mean never."""
    with pytest.raises(AgentDefinitionError, match="queue_timeout"):
        tool(queue_timeout=timedelta(0), **options)


def test_in_process_a_tool_with_a_queue_runs_right_here():
    """Queues are for workers; a method keeps its queue too."""

    class Shop:
        @tool(queue="payments", queue_timeout=timedelta(minutes=1))
        def pay(self, amount: int) -> str:
            """Pay."""
            return f"paid {amount}"

    bound = Shop().pay
    assert (bound.queue, bound.queue_timeout) == ("payments", timedelta(minutes=1))
    agent = Agent(ScriptedModel([calls(("pay", {"amount": 9})), "done"]), tools=[bound])
    agent("go")
    assert results(agent) == [("success", "paid 9")]


def test_writes_of_calls_side_by_side_merge_in_the_order_of_the_calls():
    """Which of them ends first decides nothing: the last call's value stays, as in one run after the other."""

    @tool(context=True)
    async def write(place: int, delay: float, tool_context: ToolContext) -> None:
        """Write."""
        await asyncio.sleep(delay)
        tool_context.agent.state.set("last", place)
        tool_context.agent.state.set(f"wrote-{place}", True)

    batch = calls(*(("write", {"place": place, "delay": 0.2 - place / 10}) for place in range(3)))
    agent = Agent(ScriptedModel([batch, "done"]), tools=[write])
    agent("go")
    assert agent.state.get() == {"last": 2, "wrote-0": True, "wrote-1": True, "wrote-2": True}


def test_a_callback_handler_is_refused():
    """Nothing would call it: a program that shows text by it would stay mute without a word."""
    with pytest.raises(AgentDefinitionError, match="callback_handler must be None"):
        Agent(ScriptedModel(["hi"]), callback_handler=print)  # type: ignore[arg-type]  # that is the point
