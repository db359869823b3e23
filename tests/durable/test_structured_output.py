"""Structured output on a worker: the object as JSON, after a pause, by another worker, and with other code."""

import pytest
from tests.durable.test_waiting import questions

from countersign.agent_client.errors import AgentRunError
from countersign.agent_core.messages import history_faults

AGENTS = '''
from pydantic import BaseModel, Field, field_validator

from countersign import Agent, ScriptedModel, durable, tool
from countersign.hooks import BeforeToolCallEvent
from countersign.models import calls


class Place(BaseModel):
    city: str
    country: str = "NL"


class Trip(BaseModel):
    """Where to, and for how much."""

    to: Place
    euros: int = Field(ge=1)


@tool
def book(to: str) -> str:
    """Book."""
    return f"booked {to}"


def ask_about_bookings(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "book" and event.interrupt("book?") != "y":
        event.cancel_tool = "refused"


TRIP = {"to": {"city": "Delft"}, "euros": 90}


@durable("planner")
def planner() -> Agent:
    """Asked about a booking; hands over its plan only when forced to, and at the second try."""
    script = [calls(("book", {"to": "Delft"})), "booked", calls(("Trip", {"to": "Delft"})), calls(("Trip", TRIP))]
    return Agent(ScriptedModel(script), tools=[book], hooks=[ask_about_bookings], structured_output_model=Trip)


@durable("beside")
def beside() -> Agent:
    """Hands over its plan beside a call that waits."""
    script = [calls(("book", {"to": "Delft"}), ("Trip", TRIP))]
    return Agent(ScriptedModel(script), tools=[book], hooks=[ask_about_bookings], structured_output_model=Trip)


class Timed(BaseModel):
    at: float

    @field_validator("at")
    @classmethod
    def now(cls, value: float) -> float:
        import time

        return time.time()


@durable("timed")
def timed() -> Agent:
    """A class that looks at the clock."""
    return Agent(ScriptedModel([calls(("Timed", {"at": 1}))]), structured_output_model=Timed)


@durable("stubborn")
def stubborn() -> Agent:
    """Never hands anything over."""
    return Agent(ScriptedModel(["no", "never"]), structured_output_model=Trip)
'''

TRIP = {"to": {"city": "Delft", "country": "NL"}, "euros": 90}


async def test_a_turn_that_waited_for_a_person_still_ends_with_it(lab):
    """The worker is killed meanwhile; another one forces the model, or finds what it had handed over; no tool runs."""
    lab.package("trips", agents=AGENTS)
    worker = lab.worker("trips.agents")
    sessions = [await lab.start(worker, agent, "go") for agent in ("planner", "beside")]
    asked = [await questions(session, 1) for session in sessions]
    worker.restart()
    for session, [question] in zip(sessions, asked, strict=True):
        await session.approve(question.id)
        result = await session.result()
        assert (result.stop_reason, result.structured_output) == ("tool_use", TRIP)
        assert history_faults([message async for message in session.transcript()]) == []
        assert "book" in (ran := await scheduled(lab, session)) and "Trip" not in ran


async def scheduled(lab, session):
    """Types of the activities of the session's cycles after the question."""
    events = (await lab.history_of(f"{session.id}/cycle-2")).events
    found = [event.activity_task_scheduled_event_attributes.activity_type.name for event in events]
    return {name for name in found if name}


async def test_what_ends_without_it_says_so(lab):
    """A model that never hands it over, and a class that looks at the clock: failed turns, each with its own error."""
    lab.package("trips", agents=AGENTS)
    worker = lab.worker("trips.agents")
    expected = {"stubborn": ("StructuredOutputException", "asked for Trip"),
                "timed": ("PolicyViolationError", "a validator of Timed")}  # fmt: skip
    for agent, (kind, words) in expected.items():
        session = await lab.start(worker, agent, "go")
        with pytest.raises(AgentRunError, match=words) as failed:
            await session.result()
        assert failed.value.error_type == kind
