"""A server that speaks OpenAI's chat protocol over real HTTP and answers what a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE_CHARS = 7
"""Text and arguments arrive in pieces, as from a real model."""


@dataclass
class Reply:
    """What the server does with one request.

    Attributes:
        deltas: Of a streamed answer; None for an error.
        finish: The finish reason; None leaves it out.
        status, body, headers: Of an error.
        hold: Waited for before anything is sent; for a server that does not answer.
        hold_midway: Waited for in the middle of the stream.
        cut: "clean" ends the stream in its middle as if it were done, "hard" breaks the connection.
    """

    deltas: list[dict[str, Any]] | None = None
    finish: str | None = "stop"
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    hold_midway: threading.Event | None = None
    cut: str | None = None


def says(text: str, **options: Any) -> Reply:
    """An answer in words."""
    pieces = [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
    return Reply([{"content": piece} for piece in pieces], **options)


def asks(*uses: tuple[str, Any], **options: Any) -> Reply:
    """An answer that asks for tools: (tool, input) each; an input that is text is sent as it is."""
    deltas: list[dict[str, Any]] = []
    for index, (tool, value) in enumerate(uses):
        start = {"id": f"call_{tool}_{index}", "type": "function", "function": {"name": tool, "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **start}]})
        text = value if isinstance(value, str) else json.dumps(value)
        for at in range(0, len(text), PIECE_CHARS):
            piece = {"index": index, "function": {"arguments": text[at : at + PIECE_CHARS]}}
            deltas.append({"tool_calls": [piece]})
    return Reply(deltas, **{"finish": "tool_calls", **options})


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    """An error as OpenAI sends it."""
    body = {"error": {"message": message, "type": "some_error", "code": code}}
    return Reply(status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed or lost patience is what some tests are about."""


class Endpoint:
    """The server; use it as a context manager.

    Args:
        answer: From the request's JSON to the reply; or replies in their order, the last one for ever.

    Attributes:
        requests: The requests' JSON.
        keys: Their Authorization headers.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], Reply] | list[Reply]) -> None:
        self._answer = answer
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.keys.append(self.headers["authorization"])
                endpoint.requests.append(request)
                _send(self, endpoint.reply(request))

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, request: dict[str, Any]) -> Reply:
        """The reply to a request."""
        if callable(self._answer):
            return self._answer(request)
        return self._answer.pop(0) if len(self._answer) > 1 else self._answer[0]

    def __enter__(self) -> "Endpoint":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.hold is not None:
        reply.hold.wait(30)
    if reply.deltas is None:
        content = json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
        return
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    lines = list(_lines(reply))
    for number, line in enumerate(lines):
        if number == len(lines) // 2:
            if reply.hold_midway is not None:
                reply.hold_midway.wait(30)
            if reply.cut == "clean":
                break
            if reply.cut == "hard":
                handler.close_connection = True
                return
        handler.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
    handler.wfile.write(b"0\r\n\r\n")


def _lines(reply: Reply) -> Iterator[bytes]:
    def chunk(choices: list[dict[str, Any]], **more: Any) -> bytes:
        body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
        return f"data: {json.dumps(body)}\n\n".encode()

    for delta in reply.deltas or []:
        yield chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    if reply.finish is not None:
        yield chunk([{"index": 0, "delta": {}, "finish_reason": reply.finish}])
    yield chunk([], usage={"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16})
    yield b"data: [DONE]\n\n"
