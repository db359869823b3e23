"""Answers from outside: what is taken, what is refused and with which code."""

import pytest
from tests.core.driving import START, Clock, block

from countersign.agent_core.answers import REFUSAL_CODES, check_prompt, check_said_alike, parse_answers
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import CycleOutcome, Pending, Question, SessionOptions
from countersign.errors import AnswerRefused


def question(number, **fields):
    values = {"id": f"q{number}", "name": f"n{number}", "digest": f"d{number}", "index": number} | fields
    return Question(**values)


def waiting(*questions, **options):
    """A session that waits for answers, as a cycle left it."""
    session = Session(SessionState(session_id="s", agent="a", options=SessionOptions(lifetime="open", **options)))
    session.prompt("go", START)
    session.next_cycle(START)
    uses = [{"toolUse": {"toolUseId": f"t{q.index}", "name": "act", "input": {}}} for q in questions]
    message = {"role": "assistant", "content": uses}
    pending = Pending(origin_cycle=1, message=message, questions=list(questions))
    messages = [{"role": "user", "content": [{"text": "go"}]}, message]
    session.finish_cycle(CycleOutcome(stop_reason="interrupt", last_cycle=1, messages=messages, pending=pending), START)
    return session


def code_of(call, *args):
    with pytest.raises(AnswerRefused) as caught:
        call(*args)
    assert caught.value.code in REFUSAL_CODES
    assert str(caught.value)
    return caught.value.code


CYCLE = []
CYCLE.append(CYCLE)


def nested(levels):
    value = "y"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([], "empty"),
        ("y", "malformed"),
        (None, "malformed"),
        ([{}], "malformed"),
        ([{"interruptResponse": "y"}], "malformed"),
        (block("q0", "y", at="2026-11-30T09:00:00"), "malformed"),
        (block("q0", "y", at="yesterday"), "malformed"),
        (block("q0", "y", at=7), "malformed"),
        ([{"interruptResponse": {"response": "y"}}], "malformed"),
        ([{"interruptResponse": {"interruptId": 1, "response": "y"}}], "malformed"),
        ([{"interruptResponse": {"interruptId": "q0"}}], "malformed"),
        ([block("q0", "y", digest=1)], "malformed"),
        ([block("q0", "y", responder="me")], "malformed"),
        ([block("q0", "y", comment=1)], "malformed"),
        ([block("q0", float("nan"))], "not_json"),
        ([block("q0", {1: 2})], "not_json"),
        ([block("q0", {"y"})], "not_json"),
        ([block("q0", "\ud800")], "not_json"),
        ([block("q0", CYCLE)], "not_json"),
        ([block("q0", nested(5_000))], "not_json"),
        ([block("q0", "y" * 400_000)], "too_large"),
        ([block("q0", "y"), block("q0", "n")], "duplicate"),
        ([block("q0", 1), block("q0", True)], "duplicate"),
        ([block("q9", "y")], "unknown_interrupt"),
        ([block("q0", "y", digest="other")], "outdated"),
    ],
)
def test_refusals(raw, code):
    """Each kind of bad answer has its own code, and changes nothing."""
    session = waiting(question(0), question(1))
    before = session.state.model_dump()
    assert code_of(session.answer, raw, START, "test") == code
    assert session.state.model_dump() == before


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ([block("q0", "y", digest="other", responder={"id": "bob"}), block("q0", "y")], "duplicate"),
        ([block("q0", "y", responder={"id": "bob"}), block("q0", "y", responder={"id": "eve"})], "duplicate"),
        ([block("q0", "y"), block("q0", "y", comment="")], "duplicate"),
        ({"digest": "other", "interruptResponse": {"interruptId": "q0", "response": "y", "digest": None}}, "malformed"),
        ({"digest": None, "interruptResponse": {"interruptId": "q0", "response": "y", "digest": "d0"}}, "malformed"),
    ],
)
def test_what_is_said_twice_is_said_alike(raw, code):
    """Of two digests one would be forgotten, and an answer taken for what the person has not seen."""
    assert code_of(check_said_alike, raw) == code


@pytest.mark.parametrize(
    "raw",
    [
        [block("q0", "y", digest="d0"), block("q0", "y", digest="d0"), block("q1", "n")],
        {"digest": "d0", "interruptResponse": {"interruptId": "q0", "response": "y", "digest": "d0"}},
        {"comment": "fine", "interruptResponse": {"interruptId": "q0", "response": "y", "digest": "d0"}},
    ],
)
def test_the_same_may_be_said_twice(raw):
    """A batch that was put together twice is taken."""
    check_said_alike(raw)
    waiting(question(0), question(1)).answer(raw, START, "test")


def test_one_bad_answer_spoils_the_batch():
    """A batch is taken whole or not at all."""
    session = waiting(question(0), question(1))
    assert code_of(session.answer, [block("q0", "y"), block("q9", "y")], START, "test") == "unknown_interrupt"
    assert [q.status for q in session.state.pending.questions] == ["open", "open"]
    assert not session.state.resume_due


@pytest.mark.parametrize("response", [None, False, 0, "", [], {}, 1.5, {"decision": "approve"}])
def test_a_response_is_kept_as_it_is(response):
    """Any JSON value is an answer and keeps its type."""
    session = waiting(question(0))
    receipt = session.answer(block("q0", response), START, "test")
    assert [item.status for item in receipt.accepted] == ["accepted"]
    kept = session.state.pending.questions[0].answer.response
    assert (kept, type(kept)) == (response, type(response))


def test_the_receipt_lists_what_is_still_open():
    """A partial answer says what else waits."""
    assert waiting(question(0), question(1)).answer([block("q0", "y")], START, "test").open == ["q1"]


def test_sending_the_same_answer_again_is_acknowledged():
    """A client that did not hear back may send again."""
    session = waiting(question(0), question(1))
    session.answer(block("q0", "y"), START, "test")
    receipt = session.answer(block("q0", "y"), START, "test")
    assert [item.status for item in receipt.accepted] == ["already_recorded"]


def test_the_first_answer_wins():
    """A second, different answer is told who answered and when."""
    session = waiting(question(0))
    session.answer(block("q0", "y", responder={"id": "ann"}), START, "test")
    with pytest.raises(AnswerRefused, match=r"already answered by ann at 2030-01-01") as caught:
        session.answer(block("q0", "n"), START, "test")
    assert caught.value.code == "already_answered"


@pytest.mark.parametrize(("first", "second"), [(1, True), (0, False), (1, 1.0), ("", None)])
def test_json_types_tell_answers_apart(first, second):
    """1 and true are two answers, although Python finds them equal."""
    session = waiting(question(0))
    session.answer(block("q0", first), START, "test")
    assert code_of(session.answer, block("q0", second), START, "test") == "already_answered"


@pytest.mark.parametrize(("said", "heard"), [("y", "already_recorded"), ("n", "already_answered")])
def test_an_answer_whose_call_is_done_is_still_known(said, heard):
    """While a sibling waits, a re-sent answer of a finished call is acknowledged and another one refused as late."""
    session = waiting(question(0), question(1))
    session.answer(block("q0", "y"), START, "test")
    session.state.pending.questions[0].status = "settled"
    if heard == "already_recorded":
        assert session.answer(block("q0", said), START, "test").accepted[0].status == heard
    else:
        assert code_of(session.answer, block("q0", said), START, "test") == heard


def test_withdrawn_and_expired_questions():
    """What is not asked any more can't be answered, and the code says which of the two it is."""
    session = waiting(question(0, status="withdrawn"), question(1, status="expired"), question(2))
    assert code_of(session.answer, block("q0", "y"), START, "test") == "withdrawn"
    assert code_of(session.answer, block("q1", "y"), START, "test") == "expired"


@pytest.mark.parametrize(("seconds", "taken"), [(59, True), (60, False), (61, False)])
def test_an_answer_is_held_against_the_deadline_first(seconds, taken):
    """An answer that comes after its deadline is refused, even if no timer has fired yet."""
    clock = Clock()
    session = waiting(question(0, deadline="2030-01-01T00:01:00.000+00:00"))
    clock.forward(seconds=seconds)
    if taken:
        session.answer(block("q0", "y"), clock.moment, "test")
    else:
        assert code_of(session.answer, block("q0", "y"), clock.moment, "test") == "expired"


def test_early_and_late_answers():
    """Before a question is asked, and once nothing is asked any more, an answer is refused with the reason."""
    session = Session(SessionState(session_id="s", agent="a"))
    assert code_of(session.answer, block("q0", "y"), START, "test") == "not_interrupted"


def test_prompts_that_are_refused():
    """A prompt while questions are open, after the end, or without content has its own code."""
    session = waiting(question(0))
    assert code_of(session.prompt, "more", START) == "interrupted"
    session.close(START)
    assert code_of(session.prompt, "more", START) == "closed"
    assert code_of(session.answer, block("q0", "y"), START, "test") == "closed"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (None, "empty"),
        ([], "empty"),
        (7, "malformed"),
        (["text"], "malformed"),
        ([{}], "malformed"),
        ([{"toolResult": {}}], "malformed"),
        ([block("q0", "y")], "not_interrupted"),
        ([{"text": float("inf")}], "not_json"),
        ("x" * 500_001, "too_large"),
    ],
)
def test_bad_prompts(content, code):
    """What can't be a prompt is refused by code."""
    assert code_of(check_prompt, content) == code


def test_one_block_needs_no_list():
    """A single block is a batch of one."""
    assert parse_answers(block("q0", None))[0].response is None
