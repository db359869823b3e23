"""Updates that come again, as the session remembers them."""

import asyncio
from types import SimpleNamespace

import pytest
from temporalio import workflow
from tests.core.test_session import Driven
from tests.session.test_state import waiting

from countersign import Agent, ScriptedModel
from countersign.agent_core.json_values import digest
from countersign.agent_core.session.state import RememberedUpdate
from countersign.workflows.updates import Updates


def test_an_answer_that_comes_again_is_acknowledged_though_its_receipt_was_shed(monkeypatch):
    """What it said is known from itself, and nothing of it is taken a second time."""
    session, sent = waiting(2), {"interruptResponse": {"interruptId": "q0", "response": "y"}}
    known = RememberedUpdate(digest=digest(sent), result={"accepted": [], "open": []})
    session.state.updates["u"] = known
    monkeypatch.setattr(workflow, "current_update_info", lambda: SimpleNamespace(id="u", name="answer"))
    receipt = Updates(session, lambda: None, lambda name, code: None).answer(sent)
    assert receipt["accepted"] == [{"id": "q0", "name": "", "status": "already_recorded"}]
    assert receipt["open"] == [question.id for question in session.open_questions()]
    assert session.state.pending.questions[0].answer is None


@pytest.mark.parametrize("shed", [False, True])
def test_who_comes_late_for_a_turn_gets_its_result_and_not_that_of_a_later_one(monkeypatch, shed):
    """Told "moved", a client may be back after the next prompt has run; a session that must forget says the last."""
    it = Driven(Agent(ScriptedModel(lambda scene: f"said {scene.prompt}"), tools=[]))
    it.session.state.remember("u", RememberedUpdate(digest="d", result={"moved": True, "turn": 1}))
    for text in ("first", "second"):
        it.prompt(text).step()
    if shed:
        it.session.state.shed(len(it.session.state.model_dump_json()) - 100)
    monkeypatch.setattr(workflow, "current_update_info", lambda: SimpleNamespace(id="v", name="invoke"))
    monkeypatch.setattr(workflow, "now", lambda: it.now)
    monkeypatch.setattr(workflow, "wait_condition", reached)
    told = asyncio.run(Updates(it.session, lambda: None, lambda name, code: None).invoke({"turn": 1}))
    text = told["message"]["content"][0]["text"]
    assert (told["turn"], text) == ((2, "said second") if shed else (1, "said first"))


async def reached(condition) -> None:
    """In the place of Temporal's: it waits for nothing."""
    assert condition()


def test_a_turn_s_result_is_kept_once_however_many_were_told_to_ask_for_it():
    """Each of many answers of a turn may have come by `invoke`."""
    it = Driven(Agent(ScriptedModel(["said"]), tools=[]))
    for n in range(30):
        it.session.state.remember(f"u{n}", RememberedUpdate(digest="d", result={"moved": True, "turn": 1}))
    it.prompt().step()
    assert [key for key, known in it.session.state.updates.items() if known.late] == ["u29"]
