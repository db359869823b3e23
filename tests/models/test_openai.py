"""The OpenAI-compatible path over real HTTP: what is sent, what comes back, and what each failure becomes."""

import threading

import pytest
from pydantic import BaseModel
from tests.models.endpoint import asks, fails, says

from countersign import Agent, tool
from countersign.activities.providers import model_from
from countersign.agent_core.messages import user_message
from countersign.agent_core.models import collect
from countersign.errors import (
    ContextWindowOverflowException,
    EventLoopException,
    ModelAuthenticationError,
    ModelRequestError,
    ModelThrottledException,
    ModelUnavailableError,
)

NAME = "openai:test-model"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def answer_of(source=NAME, *messages):
    """One call of a model."""
    return await collect(
        model_from(source).stream(list(messages) or [user_message("hi")], [add.tool_spec], "Be brief.")
    )


async def test_words_come_back_with_usage_and_latency(serve):
    """The pieces are one text; tokens are the server's, the latency is measured here."""
    endpoint = serve([says("Hello, Ada. Good morning.")])
    response = await answer_of()
    assert response.message == {"role": "assistant", "content": [{"text": "Hello, Ada. Good morning."}]}
    assert (response.stop_reason, response.usage["totalTokens"]) == ("end_turn", 16)
    assert response.latency_ms > 0
    [request] = endpoint.requests
    assert (request["model"], request["messages"][0]["content"]) == ("test-model", "Be brief.")
    assert request["tools"][0]["function"]["name"] == "add"
    assert endpoint.keys == ["Bearer sk-test"]


def test_a_tool_call_runs_and_its_result_goes_back(serve):
    """The whole loop in-process, with a model by name."""
    endpoint = serve([asks(("add", {"a": 1, "b": 2})), says("3")])
    result = Agent(model=NAME, tools=[add])("1 + 2?")
    assert result.message["content"] == [{"text": "3"}]
    told = endpoint.requests[1]["messages"]
    assert told[-2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1, "b": 2}'}
    assert (told[-1]["role"], told[-1]["content"]) == ("tool", "3")


class Sum(BaseModel):
    total: int


def test_structured_output_is_forced_by_tool_choice(serve):
    """Asked for its result a second time, the model gets no other tool, and has to call it."""
    endpoint = serve([says("3"), asks(("Sum", {"total": 3}))])
    result = Agent(model=NAME, tools=[add])("1 + 2?", structured_output_model=Sum)
    assert result.structured_output == Sum(total=3)
    first, forced = endpoint.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["add", "Sum"]
    assert [tool["function"]["name"] for tool in forced["tools"]] == ["Sum"]
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "Sum"}}


def test_parallel_tool_calls_each_get_their_result(serve):
    """Two calls in one message, results in the order of the calls."""
    endpoint = serve([asks(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), says("3 and 7")])
    Agent(model=NAME, tools=[add])("?")
    results = [part for part in endpoint.requests[1]["messages"] if part["role"] == "tool"]
    assert [(part["tool_call_id"], part["content"]) for part in results] == [
        ("call_add_0", "3"),
        ("call_add_1", "7"),
    ]


@pytest.mark.parametrize("arguments", ['{"a": 1, "b"', "[1, 2]", '"text"', "not json"])
def test_malformed_arguments_are_an_error_for_the_model_and_nobody_is_asked(serve, arguments):
    """The tool does not run; the model reads why, and its next request is valid for the server."""
    endpoint = serve([asks(("add", arguments)), says("sorry")])
    result = Agent(model=NAME, tools=[add])("?")
    assert result.stop_reason == "end_turn"
    told = endpoint.requests[1]["messages"]
    assert told[-2]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "must be an object" in str(told[-1]["content"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (fails(401, "Incorrect API key provided: sk-te*t"), ModelAuthenticationError),
        (fails(403), ModelAuthenticationError),
        (fails(400, "too long", "context_length_exceeded"), ContextWindowOverflowException),
        (fails(404, "The model `x` does not exist"), ModelRequestError),
        (fails(422), ModelRequestError),
        (fails(429), ModelThrottledException),
        (fails(408), ModelUnavailableError),
        (fails(500), ModelUnavailableError),
        (fails(503), ModelUnavailableError),
    ],
)  # fmt: skip
async def test_an_error_of_the_server_is_a_named_one_after_a_single_request(serve, reply, error):
    """Mapped once, with the server's words; the SDK itself does not try again."""
    endpoint = serve([reply])
    with pytest.raises(error) as raised:
        await answer_of()
    assert reply.body["error"]["message"] in str(raised.value)
    assert NAME.removeprefix("openai:") in str(raised.value)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [({"retry_after": "7"}, 7.0), ({"retry_after_ms": "250"}, 0.25), ({"retry_after": "9999"}, 300.0), ({}, None)],
)
async def test_a_throttled_call_says_how_long_the_server_wants_to_be_left_alone(serve, headers, wait_s):
    """Seconds or milliseconds, with a cap; None if it names no time."""
    serve([fails(429, **headers)])
    with pytest.raises(ModelThrottledException) as raised:
        await answer_of()
    assert raised.value.retry_after_s == wait_s


@pytest.mark.parametrize("cut", ["clean", "hard"])
@pytest.mark.parametrize("reply", [says, asks])
async def test_a_stream_that_was_cut_is_no_answer(serve, cut, reply):
    """Half a message must not pass for a whole one, even if the connection closes politely."""
    what = "These files can go, all of them." if reply is says else ("add", {"a": 1, "b": 2})
    serve([reply(what, cut=cut)])
    with pytest.raises(ModelUnavailableError) as raised:
        await answer_of()
    assert raised.value.__cause__ is not raised.value


async def test_a_server_that_does_not_answer_is_given_up(serve):
    """With the client's own timeout, once."""
    from strands.models.openai import OpenAIModel

    let_go = threading.Event()
    endpoint = serve([says("late", hold=let_go)])
    try:
        with pytest.raises(ModelUnavailableError, match="Timeout"):
            await answer_of(OpenAIModel(client_args={"timeout": 0.2}, model_id="test-model"))
        assert len(endpoint.requests) == 1
    finally:
        let_go.set()


async def test_a_server_that_is_not_there_is_unavailable(monkeypatch):
    """Worth a retry: it may come back."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with pytest.raises(ModelUnavailableError, match="Connection"):
        await answer_of()


def test_in_process_a_throttled_call_is_tried_again(serve):
    """As it would be durably; the server names the pause."""
    endpoint = serve([fails(429, retry_after="0"), fails(503, retry_after="0"), says("at last")])
    result = Agent(model=NAME)("?")
    assert result.message["content"] == [{"text": "at last"}]
    assert len(endpoint.requests) == 3


def test_in_process_a_refused_key_ends_the_turn_by_name(serve):
    """The cause is inside, as for any model error."""
    serve([fails(401, "bad key")])
    with pytest.raises(EventLoopException, match="check the key") as raised:
        Agent(model=NAME)("?")
    assert isinstance(raised.value.original_exception, ModelAuthenticationError)
