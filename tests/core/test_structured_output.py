"""Structured output in this process; how it goes beside the reference is in tests/differential/structured.py."""

from datetime import date
from typing import Generic, TypeVar

import pytest
from pydantic import BaseModel, RootModel, create_model, field_validator
from tests.core.driving import Clock, StillEffects, acts, make, reply, results, succeed, valid

from countersign import Agent, ScriptedModel
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import RecoveredCycle, Recovery, SessionOptions
from countersign.errors import AgentDefinitionError, StructuredOutputException
from countersign.hooks import AfterInvocationEvent, BeforeToolCallEvent
from countersign.models import calls

T = TypeVar("T")


class Trip(BaseModel):
    """Where to."""

    city: str
    on: date = date(2030, 1, 2)


class Bill(BaseModel):
    euros: int


class Of(BaseModel, Generic[T]):
    item: T


TRIP, BILL = calls(("Trip", {"city": "Delft"})), calls(("Bill", {"euros": 3}))


def ask_about_act(event: BeforeToolCallEvent):
    if event.tool_use["name"] == "act" and event.interrupt("ok?") != "y":
        event.cancel_tool = "denied"


class Watching(ScriptedModel):
    """Keeps what it may call, and what it must."""

    def __init__(self, script):
        super().__init__(script)
        self.told = []

    async def stream(self, messages, tool_specs=None, *args, **kwargs):
        forced = {name: kwargs[name] for name in ("tool_choice", "structured_output_model") if name in kwargs}
        self.told.append(([spec["name"] for spec in tool_specs or ()], forced))
        async for event in super().stream(messages, tool_specs, *args, **kwargs):
            yield event


def test_the_result_is_an_object_of_the_class():
    """Validated, with its defaults and types; as text it is JSON, and hooks at the end of the turn see it too."""
    seen = []

    def look(event: AfterInvocationEvent):
        seen.append(event.result.structured_output)

    result = Agent(ScriptedModel([TRIP]), hooks=[look], structured_output_model=Trip)("go")
    assert result.structured_output == Trip(city="Delft") == seen[0]
    assert str(result) == '{"city":"Delft","on":"2030-01-02"}'


def test_a_model_that_forgets_it_is_forced():
    """Asked once more, it is told of that tool alone, that it must call it, and of what class."""
    model = Watching(["hello", TRIP])
    agent = make([], [], structured_output_model=Trip)
    agent.model = model
    agent("go")
    forced = {"tool_choice": {"tool": {"name": "Trip"}}, "structured_output_model": Trip}
    assert model.told == [(["act", "Trip"], {}), (["Trip"], forced)]


def test_the_tool_is_there_only_while_a_turn_runs():
    """Nobody can call it directly, and it is not one of the agent's tools."""
    agent = make([], [TRIP], hooks=(), structured_output_model=Trip)
    agent("go")
    assert agent.tool_names == ["act"]
    with pytest.raises(AttributeError, match="Trip"):
        agent.tool.Trip(city="Delft")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("Trip", "derived from pydantic"),
        (Trip(city="Delft"), "derived from pydantic"),
        (RootModel[list[int]], "derived from pydantic"),
        (Of[int], "Of.int."),
        (create_model("act", x=(int, 0)), "named like one of its tools"),
    ],
)
def test_what_can_not_be_wanted_is_refused_by_name(wanted, words):
    """By the agent and by the call; the call changes nothing."""
    with pytest.raises(AgentDefinitionError, match=words):
        make([], ["hello"], structured_output_model=wanted)
    agent = make([], ["hello"])
    with pytest.raises(AgentDefinitionError, match=words):
        agent("go", structured_output_model=wanted)
    assert agent.messages == []


def test_what_a_call_wants_is_wanted_until_its_turn_ends():
    """Through two pauses, in place of what the agent wants by itself, which counts again in the next turn."""
    script = [calls(("act", {"x": 1})), calls(("act", {"x": 2})), "done", BILL, TRIP]
    agent = make([], script, hooks=[ask_about_act], structured_output_model=Trip)
    result = agent("go", structured_output_model=Bill)
    for _ in range(2):
        assert (result.stop_reason, result.structured_output) == ("interrupt", None)
        result = agent(reply(result, "y"))
    assert result.structured_output == Bill(euros=3)
    assert agent("go").structured_output == Trip(city="Delft")


def test_an_answer_may_bring_the_class_again():
    """For whoever answers in another process: a class can't be stored with the session."""
    agent = make([], [*acts(1)[:1], BILL], hooks=[ask_about_act])
    result = agent("go", structured_output_model=Trip)
    assert agent(reply(result, "y"), structured_output_model=Bill).structured_output == Bill(euros=3)


def test_a_class_that_has_changed_while_a_person_was_asked():
    """What was handed over beside the call does not fit any more: the model has to do it again."""
    script = [calls(("act", {"x": 1}), ("Trip", {"city": "Delft"})), calls(("Trip", {"city": "Gouda", "nights": 2}))]
    old = make([], script, hooks=[ask_about_act], structured_output_model=Trip)
    result = old("go")
    newer = create_model("Trip", city=(str, ...), nights=(int, ...))
    new = succeed(old, make([], script, hooks=[ask_about_act], structured_output_model=newer))
    assert new(reply(result, "y")).structured_output.nights == 2
    assert valid(new)


def test_a_validator_that_fails_in_its_own_way_tells_the_model():
    """Whatever it raises is an error result, and the model may try again."""

    class Strict(BaseModel):
        city: str

        @field_validator("city")
        @classmethod
        def known(cls, city: str) -> str:
            return {"Delft": "Delft"}[city]

    agent = Agent(ScriptedModel([calls(("Strict", {"city": "Atlantis"})), calls(("Strict", {"city": "Delft"}))]))
    assert agent("go", structured_output_model=Strict).structured_output == Strict(city="Delft")
    assert results(agent)[0] == ("error", "Error: no Strict can be made of the input: KeyError: 'Atlantis'")


def test_a_model_that_never_does_it():
    """The caller gets the error itself, with the next step; the conversation stays valid, and goes on."""
    agent = Agent(ScriptedModel(["hello", "never", "again", TRIP]), structured_output_model=Trip)
    with pytest.raises(StructuredOutputException, match=r"asked for Trip .* follows tool_choice"):
        agent("go")
    assert valid(agent)
    assert agent("once more").structured_output == Trip(city="Delft")


async def test_a_cycle_that_failed_keeps_that_the_model_was_asked():
    """Between the model's text and its call stands what it was told, also if a recovery puts them together."""
    agent = Agent(ScriptedModel(["hello", TRIP]), structured_output_model=Trip)
    options = SessionOptions(lifetime="open")
    session, clock = Session(SessionState(session_id="s", agent="agent", options=options)), Clock()
    effects, found = StillEffects(agent, clock), []
    session.prompt("go", clock.moment)
    first = given = session.next_cycle(clock.moment)
    for _ in range(2):
        effects.begin(given.cycle)
        outcome = (await run_cycle(agent, given, agent.messages, effects)).outcome
        found.append(effects.done)
        following = {"cycle": 2, "opens": "continue", "prompt": [], "progress": outcome.progress, "model_calls": 1}
        given = given.model_copy(update=following)
    lost = [RecoveredCycle(cycle=1, response=found[0].response),
            RecoveredCycle(cycle=2, response=found[1].response, opened_with=agent.messages[2:3])]  # fmt: skip
    session.recover(Recovery(reason="lost", cycles=lost), first, clock.moment)
    assert session.conversation() == agent.messages[:3]
    given = session.next_cycle(clock.moment)
    assert (given.progress.forced, given.progress.cycles, given.model_calls) == (True, 1, 2)
    outcome = (await run_cycle(agent, given, session.conversation(), effects)).outcome
    assert (outcome.structured_output, outcome.progress.cycles) == (Trip(city="Delft").model_dump(mode="json"), 2)
