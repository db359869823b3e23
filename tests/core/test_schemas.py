"""The JSON Schema that ships with the package says what the code takes and gives."""

import json
from pathlib import Path

import jsonschema
import pytest

import countersign
from countersign.agent_client.answers import answer_block
from countersign.agent_client.starting import start_argument
from countersign.agent_core.answers import parse_answers
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.schemas import wire_schema
from countersign.agent_core.wire import Question, SessionResult

SHIPPED = Path(countersign.__file__).parent / "wire.schema.json"


def fits(shape, value):
    """True if the value fits that definition."""
    schema = wire_schema()
    kind = jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{shape}"})
    return kind.is_valid(value)


def test_the_shipped_file_is_the_schema_of_today():
    """`python -m countersign.agent_core.schemas > src/countersign/wire.schema.json` makes it anew."""
    assert json.loads(SHIPPED.read_text()) == wire_schema()


def test_what_clients_send_and_get_fits():
    """A start and an answer as our client makes them, a question and a result as the session does."""
    assert fits("Start", start_argument("janitor", "tidy up", {"lifetime": "open"}))
    assert fits("AnswerBlock", answer_block("int-1", None, digest="d", responder="ada", comment="fine"))
    assert fits("Question", Question(id="int-1", name="ok?", digest="d").model_dump(mode="json"))
    assert fits("SessionResult", SessionResult(stop_reason="end_turn").model_dump(mode="json"))


@pytest.mark.parametrize(
    "block",
    [
        {"interruptResponse": {"interruptId": "a"}},
        {"interruptResponse": {"response": "y"}},
        {"interruptResponse": {"interruptId": "", "response": "y"}},
        {"interruptResponse": {"interruptId": "a", "response": "y", "digest": 3}},
        {"interruptResponse": {"interruptId": "a", "response": "y", "responder": "ada"}},
        {"interruptResponse": {"interruptId": "a", "response": "y"}, "digest": 3},
        {"interruptResponse": {"interruptId": "a", "response": "y"}, "responder": "ada"},
        {"response": "y"},
        "y",
    ],
)
def test_what_the_session_refuses_as_malformed_does_not_fit(block):
    """The schema and the parser agree."""
    assert not fits("AnswerBlock", block)
    with pytest.raises(AnswerRefused):
        parse_answers(block)
