"""The codec endpoint: the Temporal UI and CLI send payloads as the server has them, and get them readable.

`POST /decode` and `POST /encode`, as Temporal defines them: a JSON object {"payloads": [...]} both ways. What
is stored outside the history is fetched, too. A payload that can't be read comes back as a JSON object that
says why, so that the others of a page are shown.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.common import RawValue
from temporalio.converter import DataConverter, WorkflowSerializationContext

from countersign.agent_client.payloads.codec import OurCodec
from countersign.agent_client.payloads.errors import PayloadError
from countersign.agent_client.payloads.unreadable import UNREADABLE
from countersign.agent_ops.access import Check, passes

LARGEST_BYTES = 32 * 1024 * 1024
"""What a request may weigh; a page of the Temporal UI weighs far less."""

DECODED_BYTES = 64 * 1024 * 1024
"""What an answer may weigh, before base64: a few bytes may unpack to many, and references name large blobs."""

UNREADABLE_KEY = "countersign_unreadable"
_TOO_MUCH = f"the payloads of this request weigh more than {DECODED_BYTES:,} bytes; send fewer at once"
_log = logging.getLogger(__name__)


def codec_app(
    converter: DataConverter, check: Check, origins: Sequence[str], hosts: Sequence[str] = ("*",)
) -> Starlette:
    """The endpoint as an ASGI application.

    Args:
        converter: With the workers' keys and stores.
        check: Who may use it.
        origins: Pages that may use it, like "http://localhost:8233", which is "http://127.0.0.1:8233" as well; no
            other page's script gets through.
        hosts: Names under which it may be asked; "*" for any. Without a check of tokens these must be
            loopback names, or any page could reach it under a name of its own.
    """

    origins = with_both_names(origins)

    async def decode(payloads: Payloads) -> list[Payload]:
        codec = converter.payload_codec
        reading = (
            replace(converter, payload_codec=codec.for_one_message()) if isinstance(codec, OurCodec) else converter
        )
        done: list[Payload] = []
        left = DECODED_BYTES
        for payload in payloads.payloads:  # one after the other: no more than one is above the budget at any time
            found = await _readable(reading, payload) if left > 0 else None
            left -= found.ByteSize() if found is not None else 0
            done.append(found if found is not None and left >= 0 else _why(_TOO_MUCH))
        return done

    async def encode(payloads: Payloads) -> list[Payload]:
        if converter.payload_codec is None:
            return list(payloads.payloads)
        # As for a session: nothing is compressed that its readers would have to unpack.
        codec = converter.with_context(WorkflowSerializationContext("", "")).payload_codec
        return await codec.encode(payloads.payloads) if codec is not None else list(payloads.payloads)

    return Starlette(
        routes=[
            Route("/decode", _endpoint(decode, check, origins), methods=["POST"]),
            Route("/encode", _endpoint(encode, check, origins), methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
            Middleware(
                CORSMiddleware,
                allow_origins=list(origins),
                allow_methods=["POST"],
                allow_headers=["Authorization", "Content-Type", "X-Namespace"],
                allow_credentials=True,
            ),
        ],
    )


def _endpoint(
    work: Callable[[Payloads], Awaitable[list[Payload]]], check: Check, origins: Sequence[str]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        origin = request.headers.get("origin")
        if origin is not None and origin not in origins:
            return _refused(403, f"pages of {origin!r:.200} may not use this endpoint; allow it with --ui-origin")
        if not await passes(check, request.headers):
            return _refused(401, "not authorised: send a token that this endpoint knows")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BYTES:
                return _refused(413, f"a request may weigh {LARGEST_BYTES:,} bytes; send fewer payloads")
        try:
            given = json_format.Parse(bytes(body), Payloads())
        except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            return _refused(400, f'the request must be a JSON object {{"payloads": […]}} ({error!s:.200})')
        try:
            done = await work(given)
        except PayloadError as error:
            return _refused(500, str(error))
        return Response(json_format.MessageToJson(Payloads(payloads=done)), media_type="application/json")

    return answer


async def _readable(converter: DataConverter, payload: Payload) -> Payload:
    """A payload as it was before codec and storage; why not, if that can't be."""
    try:
        [raw] = await converter.decode([payload], [RawValue])
        found: Payload = raw.payload
    except PayloadError as error:
        _log.warning("%s", error)
        return _why(str(error))
    if found.metadata.get("encoding") == UNREADABLE:
        return _why(found.data.decode(errors="replace"))
    return found


def _why(reason: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps({UNREADABLE_KEY: reason}).encode())


def _refused(status: int, message: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"message": message}, status, headers)


_USUAL_PORTS = {"http": 80, "https": 443}


def with_both_names(origins: Sequence[str]) -> list[str]:
    """Origins, and for one of this machine also the other name of it, with the same port: browsers tell them apart."""
    found = list(origins)
    for origin in origins:
        url = urlsplit(origin)
        other = {"localhost": "127.0.0.1", "127.0.0.1": "localhost"}.get(url.hostname or "")
        if other is not None:
            found.append(f"{url.scheme}://{other}" + (f":{url.port}" if url.port else ""))
    return list(dict.fromkeys(found))


def origin_of(text: str) -> str | None:
    """What a browser sends as the origin of a page: scheme, host and port, in lower case, the usual port left out.

    Args:
        text: The same as people write it.

    Returns:
        None if it is more than that, like one with a path, or none at all.
    """
    try:
        url = urlsplit(text.lower())
        host, port = url.hostname, url.port
    except ValueError:  # a port or an address that there can't be
        return None
    if (
        url.scheme not in _USUAL_PORTS
        or not host
        or "@" in url.netloc
        or f"{url.scheme}://{url.netloc}" != text.lower()
    ):
        return None
    where = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{where}" + ("" if port in (None, _USUAL_PORTS[url.scheme]) else f":{port}")
