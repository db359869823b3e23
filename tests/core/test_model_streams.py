"""How a model's stream of events becomes a message: text, tool calls, citations, redactions, cut ends."""

import contextlib

import pytest

from countersign import Agent, tool
from countersign.agent_core.conversation_managers.cutting import summary_message
from countersign.agent_core.messages import guidance_message
from countersign.agent_core.models import collect
from countersign.errors import EventLoopException, ModelThrottledException, ModelUnavailableError
from countersign.models import Model


async def collected(*events):
    """The response that these events make."""

    async def stream():
        for event in events:
            yield event

    return await collect(stream())


def text(words):
    """A block of text."""
    return [{"contentBlockDelta": {"delta": {"text": words}}}, {"contentBlockStop": {}}]


END = {"messageStop": {"stopReason": "end_turn"}}


async def test_citations_stay_with_their_text():
    """As Strands keeps them, so that the next call can send them back."""
    cited = [{"contentBlockDelta": {"delta": {"citation": {"title": "A"}}}}, *text("It is so.")]
    response = await collected(*cited, END)
    assert response.message["content"] == [
        {"citationsContent": {"citations": [{"title": "A"}], "content": [{"text": "It is so."}]}}
    ]


async def test_a_redacted_answer_is_replaced():
    """A guardrail's words take the place of what the model said."""
    redaction = {"redactContent": {"redactAssistantContentMessage": "Removed."}}
    response = await collected(*text("secret"), END, redaction)
    assert response.message["content"] == [{"text": "Removed."}]


async def test_a_redacted_prompt_leaves_the_answer_alone():
    """It is about the user's message."""
    redaction = {"redactContent": {"redactUserContentMessage": "Removed."}}
    response = await collected(*text("hello"), END, redaction)
    assert response.message["content"] == [{"text": "hello"}]


async def test_a_stream_without_a_stop_reason_is_no_answer():
    """It may be cut off."""
    with pytest.raises(ModelUnavailableError, match="without a stop reason"):
        await collected(*text("hel"))


async def test_reasoning_and_its_signature_are_one_block():
    """The vendor wants both back, unchanged."""
    deltas = [{"reasoningContent": part} for part in ({"text": "Let me "}, {"text": "see."}, {"signature": "s1"})]
    events = [{"contentBlockDelta": {"delta": delta}} for delta in deltas]
    response = await collected(*events, {"contentBlockStop": {}}, *text("42"), END)
    assert response.message["content"][0] == {
        "reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "s1"}}
    }


@pytest.mark.parametrize(
    "usage", [None, {}, {"inputTokens": None}, {"inputTokens": "many"}, "text", {"inputTokens": 3}]
)
async def test_usage_that_is_no_number_costs_no_answer(usage):
    """It counts as none."""
    response = await collected(*text("hello"), END, {"metadata": {"usage": usage, "metrics": {"latencyMs": None}}})
    assert response.message["content"] == [{"text": "hello"}]
    assert response.usage["inputTokens"] in (0, 3)


def asks(identifier, arguments):
    """A block that asks for a tool."""
    return [
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": identifier, "name": "act"}}}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}},
        {"contentBlockStop": {}},
    ]


async def test_calls_without_an_id_get_one_each():
    """Two calls must be told apart."""
    response = await collected(*asks(None, "{}"), *asks("", "{}"), END)
    ids = [block["toolUse"]["toolUseId"] for block in response.message["content"]]
    assert len(set(ids)) == 2 and all(ids)


async def test_an_input_that_is_an_object_already_is_taken():
    """Some servers do not write it as text."""
    response = await collected(*asks("a", {"x": 1}), END)
    assert response.message["content"][0]["toolUse"]["input"] == {"x": 1}


async def test_an_input_that_is_too_deep_stays_text():
    """No tool takes it, and no converter on the way stumbles over it."""
    deep = "[" * 150 + "]" * 150
    response = await collected(*asks("a", '{"x": ' + deep + "}"), END)
    assert isinstance(response.message["content"][0]["toolUse"]["input"], str)


async def test_a_character_that_came_in_two_halves_is_whole():
    """A server may split an emoji between two events."""
    halves = [{"contentBlockDelta": {"delta": {"text": half}}} for half in ("\ud83d", "\ude00")]
    response = await collected(*halves, {"contentBlockStop": {}}, END)
    assert response.message["content"] == [{"text": "\U0001f600"}]


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened", "max_tokens", "anything"])
def test_calls_of_a_message_that_was_cut_do_not_run(reason):
    """Their input may be half of what the model meant, and defaults would fill the rest."""
    ran = []

    @tool
    def wipe(disk: int = 0) -> str:
        """Wipe."""
        ran.append(disk)
        return "wiped"

    class Cut(Model):
        """Stops in the middle of its call."""

        async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "a", "name": "wipe"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": reason}}

    agent = Agent(Cut(), tools=[wipe])
    with pytest.raises(EventLoopException) if reason == "max_tokens" else contextlib.nullcontext():
        assert agent("go").stop_reason == reason
    assert ran == []


def test_a_model_gets_copies_of_the_messages():
    """What it changes in them is no part of the conversation, in a later attempt or call neither."""
    seen, busy = [], ModelThrottledException("not now")
    busy.retry_after_s = 0

    class Scribbling(Model):
        async def stream(self, messages, *args, **kwargs):
            seen.append(messages[0]["content"][0]["text"])
            messages[0]["content"][0]["text"] = "scribbled"
            if len(seen) == 1:
                raise busy
            for event in [*text("fine"), END]:
                yield event

    agent = Agent(Scribbling())
    agent("hello")
    agent("again")
    assert seen == ["hello"] * 3 and agent.messages[0]["content"] == [{"text": "hello"}]


def test_a_vendor_s_model_gets_no_marks():
    """What we write beside role and content is ours."""
    seen = []

    class Theirs:
        async def stream(self, messages, *args, **kwargs):
            seen.extend(messages)
            for event in [*text("fine"), END]:
                yield event

    marked = [guidance_message("be polite"), summary_message("earlier", 3)]
    agent = Agent(Theirs(), messages=marked)
    agent("hello")
    assert len(seen) == 3 and all(set(message) == {"role", "content"} for message in seen)
