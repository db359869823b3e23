"""Updates that come again, as the session remembers them."""

from types import SimpleNamespace

from temporalio import workflow
from tests.session.test_state import waiting

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
