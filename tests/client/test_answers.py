"""What an answer looks like when it is sent, and under which id."""

import pytest

from countersign.agent_client.answers import answer_block, answer_blocks, is_answer_batch, request_id, verdict_block
from countersign.agent_core.wire import Question


@pytest.mark.parametrize("response", [None, False, 0, "", [], {}, True, 1.5, "y"])
def test_a_response_keeps_its_json_type(response):
    """Whatever JSON value a person sends is what goes out."""
    (block,) = answer_blocks(("int-1", response))
    sent = block["interruptResponse"]["response"]
    assert sent == response
    assert type(sent) is type(response)


def test_pairs_and_blocks_mix_in_one_batch():
    """A batch may hold both forms; each becomes a block."""
    blocks = answer_blocks([("a", 1), {"interruptResponse": {"interruptId": "b", "response": None}}])
    assert [block["interruptResponse"]["interruptId"] for block in blocks] == ["a", "b"]


def test_what_stands_in_a_block_wins_over_the_arguments():
    """A digest in a block is that of its own question."""
    own = answer_block("a", "y", digest="d1")
    (block,) = answer_blocks(own, digest="d2", responder="ann", comment="ok")
    assert block["interruptResponse"] == {
        "interruptId": "a",
        "response": "y",
        "digest": "d1",
        "responder": {"id": "ann"},
        "comment": "ok",
    }


def test_what_stands_beside_an_answer_is_sent_too():
    """A digest may stand in the block or beside it; either wins over the arguments."""
    own = {"digest": "d1", **answer_block("a", "y")}
    assert answer_blocks(own, digest="d2") == [own]


@pytest.mark.parametrize("bad", ["y", ("a",), {"interruptId": "a"}, [{"interruptResponse": {"interruptId": "a"}}], [3]])
def test_what_is_no_answer_is_refused_before_it_is_sent(bad):
    """A missing response is not taken for null."""
    with pytest.raises(TypeError, match="is no answer"):
        answer_blocks(bad)


def test_an_empty_batch_is_refused():
    """Answering nothing is a mistake."""
    with pytest.raises(ValueError, match="no answers"):
        answer_blocks([])


def test_a_response_that_is_not_json_is_refused_with_its_place():
    """A set would be changed on the way."""
    with pytest.raises(TypeError, match=r"interruptResponse\.response"):
        answer_blocks(("a", {1, 2}))


def test_a_verdict_sends_the_questions_own_word_and_the_digest_that_was_shown():
    """Approve means what the hook that asked understands."""
    question = Question(id="q", name="deploy", digest="abc", answers={"approve": {"go": True}, "deny": False})
    sent = verdict_block(question, "approve")["interruptResponse"]
    assert sent == {"interruptId": "q", "response": {"go": True}, "digest": "abc"}
    assert verdict_block(question, "deny")["interruptResponse"]["response"] is False


def test_a_verdict_that_a_question_does_not_take_is_refused():
    """A free question has no approve button, and none is made up."""
    with pytest.raises(ValueError, match="no answer for 'approve'"):
        verdict_block(Question(id="q", name="which", digest="abc", answers={}), "approve")


def test_ids_of_two_answers_differ_though_their_content_is_the_same():
    """Two people who say the same are two answers."""
    first, second = (request_id("answer") for _ in range(2))
    assert first != second
    assert first.rsplit("-", 1)[0] == second.rsplit("-", 1)[0]


@pytest.mark.parametrize(("content", "expected"), [("hello", False), ([{"text": "hi"}], False), ([], False)])
def test_a_prompt_is_not_taken_for_answers(content, expected):
    """`invoke` tells prompts from answers by their blocks."""
    assert is_answer_batch(content) is expected
    assert is_answer_batch([answer_block("a", 1), ("b", 2)])
