"""The model activity: how a model's errors travel, and what it is given."""

import asyncio

import pytest
from temporalio.exceptions import ApplicationError
from tests.activities.calls import environment, served

from countersign import ScriptedModel
from countersign.activities import heartbeats
from countersign.activities.model import RESPONSE_LIMIT_BYTES, ModelActivities
from countersign.activities.segments import Segments
from countersign.agent_core import errors
from countersign.agent_core.messages import assistant_text, user_message
from countersign.agent_core.wire import MODEL_ACTIVITY, ModelCall, ModelResponse


def call(**changes):
    return ModelCall(agent="tester", session_id="s", cycle=1, call=0).model_copy(update=changes)


async def failure(error: Exception) -> ApplicationError:
    """What the activity makes of a model's error."""
    model = ModelActivities(served(model=ScriptedModel([error])), Segments())
    with pytest.raises(ApplicationError) as raised:
        await (await environment()).run(model.call_model, call().model_dump(), [user_message("hi")])
    return raised.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.ModelThrottledException("slow down"), "ModelThrottledException"),
        (ConnectionRefusedError("no"), "ModelUnavailableError"),
        (TimeoutError("late"), "ModelUnavailableError"),
    ],
)
async def test_what_may_pass_is_retried(error, kind):
    """Throttling, lost connections and timeouts are retryable, and named for what they are."""
    found = await failure(error)
    assert (found.type, found.non_retryable) == (kind, False)


@pytest.mark.parametrize(
    "error",
    [
        errors.ContextWindowOverflowException("long"),
        errors.ModelAuthenticationError("who"),
        errors.ModelRequestError("what"),
        errors.MaxTokensReachedException("cut"),
        errors.ModelError("plain"),
        ValueError("odd"),
        FileNotFoundError("no such file"),
    ],
)
async def test_what_a_retry_can_not_help_is_not_retried(error):
    """The failure's type is the error's name, and its text is the error's own."""
    found = await failure(error)
    assert (found.type, found.message, found.non_retryable) == (type(error).__name__, str(error), True)


async def test_a_message_that_is_too_large_is_a_named_error():
    """It would be kept in the conversation and shown in questions, so it is refused here."""
    model = ModelActivities(served(model=ScriptedModel(["x" * RESPONSE_LIMIT_BYTES])), Segments())
    with pytest.raises(ApplicationError) as raised:
        await (await environment()).run(model.call_model, call().model_dump(), [user_message("hi")])
    assert (raised.value.type, raised.value.non_retryable) == ("PayloadTooLargeError", True)


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_the_conversation_comes_in_any_number_of_pieces(queue, pieces):
    """Over a real server, where the converter sees one argument per piece."""
    model = ScriptedModel(lambda scene: f"{len(scene.messages)} messages")
    segments = [[user_message("a"), assistant_text("b")] for _ in range(pieces)]
    async with queue.worker(served(model=model)):
        handle = await queue.start(MODEL_ACTIVITY, call(), *segments)
        response = ModelResponse.model_validate(await asyncio.wait_for(handle.result(), 60))
    assert response.message == assistant_text(f"{2 * pieces} messages")


async def test_a_model_that_thinks_long_keeps_its_call(queue, monkeypatch):
    """Silence for longer than the heartbeat timeout is not taken for a lost worker."""
    asked = []
    monkeypatch.setattr(heartbeats, "HEARTBEAT_S", 0.2)

    async def think(scene):
        asked.append(scene.call)
        await asyncio.sleep(6)
        return "thought"

    async with queue.worker(served(model=ScriptedModel(think))):
        handle = await queue.start(MODEL_ACTIVITY, call(), [user_message("hi")], heartbeat_s=5)
        response = ModelResponse.model_validate(await asyncio.wait_for(handle.result(), 60))
    assert (response.message, asked) == (assistant_text("thought"), [0])
