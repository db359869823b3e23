"""Which decision a count is filed under: only words that people agreed on count as yes or no."""

import pytest

from countersign.agent_core.wire import Answer, Question
from countersign.workflows.metering import decision_of

OWN_WORDS = {"approve": "ship it", "deny": "wait"}


@pytest.mark.parametrize(
    ("response", "answers", "decision"),
    [
        ("y", None, "approved"),
        (True, None, "approved"),
        ("ship it", OWN_WORDS, "approved"),
        ("n", None, "denied"),
        (False, None, "denied"),
        ("no: too expensive", None, "denied"),
        ("wait", OWN_WORDS, "denied"),
        ("retry", {"retry": "retry", "skip": "skip"}, "other"),
        (None, None, "other"),
        ({"decision": "reject"}, None, "denied"),
    ],
)
def test_an_answer_is_counted_by_its_words(response, answers, decision):
    """What only the asker understands is "other", never a yes."""
    question = Question(id="q", name="n", digest="d", answer=Answer(response=response))
    if answers is not None:
        question.answers = answers
    assert decision_of(question) == decision
