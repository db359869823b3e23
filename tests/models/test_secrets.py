"""Keys stay out of errors: those go into histories, logs and the Temporal UI."""

import pytest
from temporalio.exceptions import ApplicationError
from tests.activities.calls import environment, served
from tests.models.endpoint import fails

from countersign.activities.model import ModelActivities
from countersign.activities.providers import model_from
from countersign.activities.providers.secrets import without_secrets
from countersign.activities.segments import Segments
from countersign.agent_core.messages import user_message
from countersign.agent_core.wire import ModelCall
from countersign.errors import AgentDefinitionError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("wrong key qwerty-123456", "wrong key ***"),
        ("Illegal header value b'Bearer abc.def\\n'", "Illegal header value b'Bearer ***"),
        ("at http://ada:hunter2@proxy/v1", "at http://***@proxy/v1"),
        ("Incorrect API key provided: sk-proj-abcdefghij", "Incorrect API key provided: ***"),
        ("the model is busy", "the model is busy"),
    ],
)
def test_what_is_or_looks_like_a_key_is_taken_out(text, shown, monkeypatch):
    """Values of variables that sound like keys, and what has the shape of one."""
    monkeypatch.setenv("OPENAI_API_KEY", "qwerty-123456")
    assert without_secrets(text).startswith(shown)


@pytest.mark.parametrize("key", ["sk-secret-1234567\n", " sk-secret-1234567"])
def test_a_key_with_a_line_break_is_refused_when_the_worker_starts(key, monkeypatch):
    """As it stands in many files; the vendor's SDK would print it."""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(AgentDefinitionError, match="OPENAI_API_KEY begins or ends") as raised:
        model_from("openai:x")
    assert "secret" not in str(raised.value)


def test_a_key_in_the_place_of_a_name_is_not_shown():
    """COUNTERSIGN_MODEL=sk-… is a slip that happens."""
    with pytest.raises(AgentDefinitionError) as raised:
        model_from("sk-proj-abcdefghijkl")
    assert "abcdefghijkl" not in str(raised.value)


async def test_a_server_that_repeats_the_key_does_not_get_it_into_the_history(serve):
    """Neither the failure's text nor a cause has it."""
    serve([fails(401, "bad key sk-test-0123456789, go away")])
    model = ModelActivities(served(model="openai:x"), Segments())
    call = ModelCall(agent="tester", session_id="s", cycle=1, call=0).model_dump()
    with pytest.raises(ApplicationError) as raised:
        await (await environment()).run(model.call_model, call, [user_message("hi")])
    assert "sk-test" not in str(raised.value)
    assert raised.value.__cause__ is None
