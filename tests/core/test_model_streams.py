"""How a model's stream of events becomes a message: text, tool calls, citations, redactions, cut ends."""

import pytest

from countersign.agent_core.models import collect
from countersign.errors import ModelError


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
    with pytest.raises(ModelError, match="without a stop reason"):
        await collected(*text("hel"))


async def test_reasoning_and_its_signature_are_one_block():
    """The vendor wants both back, unchanged."""
    deltas = [{"reasoningContent": part} for part in ({"text": "Let me "}, {"text": "see."}, {"signature": "s1"})]
    events = [{"contentBlockDelta": {"delta": delta}} for delta in deltas]
    response = await collected(*events, {"contentBlockStop": {}}, *text("42"), END)
    assert response.message["content"][0] == {
        "reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "s1"}}
    }
