"""The carried state: what it sheds to stay sendable, and that answers change all of it or nothing."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.agent_core.json_values import json_size
from countersign.agent_core.messages import assistant_text, error_result, results_message, user_message
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.session.state import RememberedUpdate
from countersign.agent_core.wire import AuditEntry, Pending, Question, SessionOptions, StoredSegment
from countersign.errors import AnswerRefused

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def waiting(count: int) -> Session:
    """A session that asks as many questions; the last one expired a second ago."""
    uses = [{"toolUse": {"toolUseId": f"t{n}", "name": "act", "input": {}}} for n in range(count)]
    asked = [
        Question(id=f"q{n}", name="ok?", digest=f"d{n}", index=n,
                 deadline="2029-12-31T23:59:59.000+00:00" if n == count - 1 else None)
        for n in range(count)
    ]  # fmt: skip
    message = {"role": "assistant", "content": uses}
    return Session(
        SessionState(
            session_id="s", agent="a", status="waiting", turn=1, cycle=1, tail=[message],
            options=SessionOptions(lifetime="open"),
            pending=Pending(origin_cycle=1, message=message, questions=asked),
        )
    )  # fmt: skip


def answers_to(count: int):
    one = st.fixed_dictionaries(
        {"interruptId": st.sampled_from([f"q{n}" for n in range(count)] + ["nobody"])},
        optional={
            "response": st.sampled_from([None, False, 0, "", [], {}, True, "y", "n"]),
            "digest": st.sampled_from(["d0", "d1", "old", None]),
        },
    )
    return st.lists(st.one_of(one.map(lambda inner: {"interruptResponse": inner}), st.none()), max_size=4)


@settings(max_examples=300)
@given(st.lists(answers_to(3), max_size=4))
def test_a_batch_of_answers_changes_everything_or_nothing(batches):
    """A refused batch leaves the state as it was; an accepted one holds every answer of it, types kept."""
    session = waiting(3)
    for batch in batches:
        before = session.state.model_dump_json()
        try:
            receipt = session.answer(batch, NOW, "test")
        except AnswerRefused:
            assert session.state.model_dump_json() == before
            continue
        given = {block["interruptResponse"]["interruptId"]: block["interruptResponse"]["response"] for block in batch}
        held = {q.id: q.answer.response for q in session.state.pending.questions if q.answer is not None}
        assert {line.id for line in receipt.accepted} == set(given)
        for id_, response in given.items():
            assert (type(held[id_]), held[id_]) == (type(response), response)


def test_a_first_answer_is_never_replaced():
    """A second, other answer is refused and the first one stands; False, 0 and null are three answers."""
    session = waiting(2)
    session.answer({"interruptResponse": {"interruptId": "q0", "response": False}}, NOW, "test")
    for other in (0, None, "", "y"):
        with pytest.raises(AnswerRefused) as refused:
            session.answer({"interruptResponse": {"interruptId": "q0", "response": other}}, NOW, "test")
        assert refused.value.code == "already_answered"
    assert session.state.pending.questions[0].answer.response is False


def heavy(results: int = 40, lines: int = 100) -> SessionState:
    state = waiting(2).state
    for n in range(results):
        result = {"stop_reason": "end_turn", "turn": n, "state": {"notes": "x" * 10_000}}
        state.updates[f"u{n}"] = RememberedUpdate(digest=f"d{n}", result=result)
    for n in range(lines):
        state.note(AuditEntry(at="", event=f"e{n}", detail={"answer": "y" * 5_000}))
    return state


def test_a_state_that_fits_sheds_nothing():
    """Memories go only if they must."""
    state = heavy()
    before = state.model_dump_json()
    assert state.shed(2_000_000)
    assert state.model_dump_json() == before


def test_outcomes_go_before_the_audit_and_every_update_stays_known():
    """A client that sends an update again is told to ask for its turn; nothing runs a second time."""
    state = heavy()
    assert state.shed(600_000)
    assert json_size(state.model_dump(mode="json")) <= 600_000
    assert [known.digest for known in state.updates.values()] == [f"d{n}" for n in range(40)]
    assert state.updates["u0"].result == {"moved": True, "turn": 0}
    assert state.audit_dropped == 0


def test_copies_in_the_audit_go_before_anything_else():
    """The oldest first; the lines stay, and say how large what stood there is."""
    state = SessionState(session_id="s", agent="a")
    for _ in range(100):
        state.note(AuditEntry(at="", event="tool_started", detail={"tool": "pay", "input": "y" * 1_900}))
    state.updates["u"] = RememberedUpdate(digest="d", result={"stop_reason": "end_turn", "notes": "x" * 10_000})
    assert state.shed(150_000)
    assert (len(state.audit), state.audit_dropped) == (100, 0)
    assert state.audit[0].detail == {"tool": "pay", "input_bytes": 1_902}
    assert state.audit[-1].detail["input"] == "y" * 1_900
    assert state.updates["u"].result["notes"] == "x" * 10_000


def test_the_oldest_audit_lines_go_last_and_are_counted():
    """Questions and conversation stay whole."""
    state = heavy()
    asked = [question.model_dump() for question in state.pending.questions]
    assert state.shed(100_000)
    assert state.audit_dropped > 0
    assert state.audit[-1].event == "e99"
    assert state.audit_dropped + len(state.audit) == 100
    assert [question.model_dump() for question in state.pending.questions] == asked


def test_what_can_not_fit_says_so():
    """The conversation is not cut; the session then stays in its run."""
    state = heavy()
    state.extend([{"role": "user", "content": [{"text": "z" * 200_000}]}])
    before = state.model_dump_json()
    assert not state.shed(100_000)
    assert state.model_dump_json() == before  # in vain, nothing is given away


def test_what_stands_twice_is_shed_before_a_session_outgrows_its_run():
    """A large agent.state does not keep a session in its run; its result has it all the same."""
    session = waiting(1)
    session.state.agent_state = {"notes": "x" * 950_000}
    session.stop(NOW)
    before = session.result()
    assert not session.state.shed(1_900_000)
    assert session.state.shed_more(1_900_000)
    assert json_size(session.state.model_dump(mode="json")) < 1_000_000
    assert session.result() == before


def test_a_large_invocation_state_stands_once():
    """That of a turn which has ended goes; the next one begins with what the session was started with."""
    session = waiting(1)
    given = {"file": "x" * 950_000}
    session.state.options.invocation_state, session.state.invocation_state = given, {**given, "request_state": {}}
    assert not session.state.shed_more(1_900_000)  # the turn goes on with it
    assert session.state.invocation_state["file"] == given["file"]
    session.stop(NOW)
    assert session.state.shed_more(1_900_000)
    session.prompt("next", NOW)
    assert session.next_cycle(NOW).invocation_state == given


def test_receipts_of_many_answers_are_shed():
    """The updates stay known, so that none counts as new."""
    state = SessionState(session_id="s", agent="a")
    name = "countersign:human-in-the-loop"
    accepted = [{"id": f"int-1-{n}-0123456789abcdef", "name": name, "status": "accepted"} for n in range(20)]
    for n in range(1_000):
        state.remember(f"u{n}", RememberedUpdate(digest=f"d{n}", result={"accepted": accepted, "open": []}))
    assert not state.shed(1_900_000)
    assert state.shed_more(1_900_000)
    assert [known.digest for known in state.updates.values()] == [f"d{n}" for n in range(1_000)]
    assert state.updates["u0"].result == {"accepted": [], "open": []}
    assert state.updates["u999"].result == {"accepted": accepted, "open": []}


def test_few_updates_are_remembered_whole():
    """A session of many turns does not hold the result of each of them."""
    state = SessionState(session_id="s", agent="a")
    for n in range(50):
        result = {"stop_reason": "end_turn", "turn": n, "message": "x" * 1_000}
        state.remember(f"u{n}", RememberedUpdate(digest=f"d{n}", result=result))
    whole = [key for key, known in state.updates.items() if "message" in known.result]
    assert (whole[0], len(whole), len(state.updates)) == ("u30", 20, 50)
    assert state.updates["u0"].result == {"moved": True, "turn": 0}


def test_results_go_behind_their_message_and_what_is_in_storage_stays_there():
    """A message of a hook stands between; the reference before it is not looked into."""
    stored, asks = StoredSegment(messages=2, reference="r"), assistant_text("asks")
    asks["content"].append({"toolUse": {"toolUseId": "a", "name": "act", "input": {}}})
    state = SessionState(session_id="s", agent="a", segments=[stored], tail=[asks, user_message("noted")])
    results = results_message([error_result("a", "no")])
    for _ in range(2):  # it has them the second time
        state.put_results(results, asks)
        assert (state.segments, state.tail) == ([stored], [asks, results, user_message("noted")])
