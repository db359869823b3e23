"""Other vendors through the same adapter, over real HTTP: an answer, and an error that their SDK does not retry."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from countersign.activities.providers import model_from
from countersign.agent_core.messages import user_message
from countersign.agent_core.models import collect
from countersign.errors import ModelThrottledException, ModelUnavailableError


def _sse(*events: dict) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


ANTHROPIC = _sse(
    {
        "type": "message_start",
        "message": {
            "id": "m", "type": "message", "role": "assistant", "content": [], "model": "x", "stop_reason": None,
            "stop_sequence": None, "usage": {"input_tokens": 4, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta", "usage": {"output_tokens": 3},
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
    },
    {"type": "message_stop"},
)  # fmt: skip

OLLAMA = (
    json.dumps({"model": "x", "message": {"role": "assistant", "content": "Hello."}, "done": False})
    + "\n"
    + json.dumps(
        {
            "model": "x", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
            "prompt_eval_count": 4, "eval_count": 3, "total_duration": 2_000_000,
        }
    )
    + "\n"
).encode()  # fmt: skip

BEDROCK = json.dumps(
    {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello."}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 4, "outputTokens": 3, "totalTokens": 7},
        "metrics": {"latencyMs": 5},
    }
).encode()


@contextmanager
def answering(status: int, kind: str, content: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that gives one answer to everything; its address, and the paths that were asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"] or 0))
            paths.append(self.path)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


def bedrock(url: str) -> object:
    """Bedrock's model without streaming, whose answer is plain JSON."""
    from strands.models.bedrock import BedrockModel

    return BedrockModel(model_id="x", streaming=False, region_name="eu-west-1", endpoint_url=url)


def anthropic(url: str) -> str:
    """By name; the address is in the environment."""
    return "anthropic:x"


def ollama(url: str) -> str:
    """By name; the address is in the environment."""
    return "ollama:x"


VENDORS = [
    (anthropic, "text/event-stream", ANTHROPIC),
    (ollama, "application/x-ndjson", OLLAMA),
    (bedrock, "application/json", BEDROCK),
]


@pytest.fixture
def environment(monkeypatch):
    """Sets the variables that the vendors' SDKs read."""

    def set_to(url: str) -> None:
        for name, value in {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "sk",
            "OLLAMA_HOST": url,
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
        }.items():
            monkeypatch.setenv(name, value)

    return set_to


@pytest.mark.parametrize(("vendor", "kind", "content"), VENDORS)
async def test_a_vendor_answers_through_the_adapter(vendor, kind, content, environment):
    """Its text, its tokens, and a latency."""
    with answering(200, kind, content) as (url, paths):
        environment(url)
        response = await collect(model_from(vendor(url)).stream([user_message("hi")]))
    assert response.message == {"role": "assistant", "content": [{"text": "Hello."}]}
    assert (response.stop_reason, response.usage["inputTokens"], len(paths)) == ("end_turn", 4, 1)
    assert response.latency_ms > 0


@pytest.mark.parametrize(("status", "error"), [(429, ModelThrottledException), (503, ModelUnavailableError)])
@pytest.mark.parametrize(("vendor", "kind", "content"), VENDORS)
async def test_a_vendors_sdk_does_not_retry(vendor, kind, content, status, error, environment):
    """One request, one named error: Temporal owns retries."""
    with answering(status, "application/json", b'{"message": "busy", "error": "busy"}') as (url, paths):
        environment(url)
        with pytest.raises(error):
            await collect(model_from(vendor(url)).stream([user_message("hi")]))
    assert len(paths) == 1


async def test_bytes_travel_as_json_and_reach_the_vendor_as_bytes(environment):
    """Redacted reasoning and images are bytes for a vendor, and marked text in the conversation."""
    from countersign.activities.providers.strands_model import StrandsModel

    seen = []

    class Echo:
        async def stream(self, messages, tool_specs, system_prompt, **kwargs):
            seen.extend(messages)
            yield {"contentBlockDelta": {"delta": {"reasoningContent": {"redactedContent": b"\x00secret"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    model = StrandsModel(Echo())
    first = (await collect(model.stream([user_message("hi")]))).message
    json.dumps(first)
    await collect(model.stream([first]))
    assert seen[-1]["content"] == [{"reasoningContent": {"redactedContent": b"\x00secret"}}]


@pytest.mark.parametrize("by_itself", [True, False])
async def test_a_model_that_enforces_output_by_itself_gets_the_class(by_itself):
    """Bedrock's and Anthropic's choose between a forced call and their own way; others are only told the tool."""
    from countersign.activities.providers.strands_model import StrandsModel

    class Vendor:
        _supports_structured_output = by_itself

        async def stream(self, messages, tool_specs, system_prompt, **kwargs):
            yield {"contentBlockDelta": {"delta": {"text": " ".join(sorted(kwargs))}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    forced = {"tool_choice": {"tool": {"name": "dict"}}, "structured_output_model": dict}
    told = (await collect(StrandsModel(Vendor()).stream([user_message("hi")], **forced))).message["content"][0]["text"]
    expected = ["invocation_state", *(["structured_output_model"] if by_itself else []), "tool_choice"]
    assert told.split() == expected
