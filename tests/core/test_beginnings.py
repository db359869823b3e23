"""What an agent is built with, its own messages and state, is what its session begins with."""

import asyncio

from tests.core.driving import StillEffects, make
from tests.core.test_break_sessions import called, crash, said
from tests.core.test_session import Driven

from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import RecoveredCall, RecoveredCycle, ToolOutcome
from countersign.hooks import BeforeInvocationEvent

EARLIER = [
    {"role": "user", "content": [{"text": "earlier"}]},
    {"role": "assistant", "content": [{"text": "yes"}]},
]


def spend(event: BeforeInvocationEvent):
    """Each invocation uses up the budget; the second one finds none."""
    event.agent.state.set("found", event.agent.state.get("budget"))
    event.agent.state.delete("budget")


def build():
    """An agent as a factory builds it: for each cycle anew."""

    def script(scene):
        return f"{len(scene.messages)} messages"

    return make([], script, hooks=[spend], messages=list(EARLIER), state={"budget": 5})


class Durable(Driven):
    """A session as a worker begins it."""

    def __init__(self):
        super().__init__(build())
        self.session.state.fresh = True

    def run_one(self, given, stop_requested=False):
        """Run one cycle of an agent that was built for it, in a session that was carried as JSON."""
        carried = SessionState.model_validate_json(self.session.state.model_dump_json())
        self.session, self.agent = Session(carried), build()
        effects = StillEffects(self.agent, self.clock)
        end = asyncio.run(run_cycle(self.agent, given, self.session.conversation(), effects))
        self.session.finish_cycle(end.outcome, self.now)

    def texts(self):
        """The first block of each message, as a text."""
        return [message["content"][0].get("text") for message in self.session.conversation()]


def test_a_session_begins_with_its_agents_messages_and_state_as_in_process():
    """They are there once: later turns go on from what the first one has left, a deleted key included."""
    it, here = Durable().prompt().step(), build()
    here("go")
    assert it.session.conversation() == here.messages
    assert it.texts() == ["earlier", "yes", "go", "3 messages"]
    assert it.session.state.agent_state == here.state.get() == {"found": 5}
    it.prompt("more").step()
    here("more")
    assert it.session.conversation() == here.messages
    assert it.session.state.agent_state == here.state.get() == {"found": None}


def test_a_first_cycle_that_is_lost_does_not_lose_them():
    """What it had finished comes behind the agent's own, and what its tools wrote goes before the agent's state."""
    it = Durable().prompt()
    result = {"toolUseId": "u", "status": "success", "content": [{"text": "1"}]}
    outcome = ToolOutcome(kind="result", result=result, state_set={"budget": 4})
    call = RecoveredCall(index=0, status="finished", outcome=outcome)
    crash(it, RecoveredCycle(cycle=1, response=said(called("u", 1)), calls=[call])).step()
    assert it.texts() == ["earlier", "yes", "go", None, None, "5 messages"]
    assert it.session.state.agent_state == {"found": 4}
    assert it.valid()


def test_a_prompt_that_runs_again_finds_them():
    """So does one whose first cycle left nothing."""
    it = crash(Durable().prompt()).step()
    assert it.texts() == ["earlier", "yes", "go", "3 messages"]
    assert it.session.state.agent_state == {"found": 5}
