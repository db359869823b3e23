"""The codec endpoint over HTTP: who gets in, what is decoded, and what is said of the rest."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import zlib
from pathlib import Path

import httpx
import pytest
from temporalio.api.common.v1 import Payload

from countersign.agent_client.dev_server import free_port
from countersign.agent_client.payloads import PayloadSettings, data_converter
from countersign.agent_ops.access import AccessSettingsError, anybody, bearer_tokens, named_check
from countersign.agent_ops.codec_app import LARGEST_BYTES, UNREADABLE_KEY, codec_app, origin_of

UI, TOKEN = "http://localhost:8233", "0123456789abcdef0123456789abcdef"
ORIGINS = (
    (UI, True), ("http://127.0.0.1:8233", True), ("http://127.0.0.1:8234", False), ("https://127.0.0.1:8233", False),
    ("http://evil.example", False), ("null", False),
)  # fmt: skip
"""Pages, and whether they get an answer; `dev` names the UI by its address, people by its name."""

BEARER = {"Authorization": f"Bearer {TOKEN}"}
SECRET = "the secret " + os.urandom(20_000).hex()


@pytest.fixture
def settings(tmp_path) -> PayloadSettings:
    """With a key and a store."""
    (tmp_path / "keys").write_text(f"k1 {base64.b64encode(os.urandom(32)).decode()}\n")
    return PayloadSettings(storage=f"file://{tmp_path}/store", encryption_keys=tmp_path / "keys")


@pytest.fixture
def tokens(tmp_path):
    """A file with two tokens."""
    file = tmp_path / "tokens"
    file.write_text(f"# for the UI\n{'x' * 32}\n\n{TOKEN}\n")
    return file


def asking(settings: PayloadSettings, check=anybody, **more) -> httpx.AsyncClient:
    app = codec_app(data_converter(settings), check, [UI], **more)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://codec:8081")


def as_json(*payloads: Payload) -> dict:
    """Payloads as the protocol has them."""
    encoded = [
        {
            "metadata": {name: base64.b64encode(value).decode() for name, value in payload.metadata.items()},
            "data": base64.b64encode(payload.data).decode(),
        }
        for payload in payloads
    ]
    return {"payloads": encoded}


def values(answer: httpx.Response) -> list:
    assert answer.status_code == 200, answer.text
    return [json.loads(base64.b64decode(payload["data"])) for payload in answer.json()["payloads"]]


async def test_what_is_encrypted_and_stored_elsewhere_becomes_readable(settings):
    """A reference is fetched and decrypted, beside a small value; and what it encodes, workers read."""
    converter = data_converter(settings)
    payloads = await converter.encode([SECRET, "small"])
    async with asking(settings) as http:
        assert values(await http.post("/decode", json=as_json(*payloads))) == [SECRET, "small"]
        plain = Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')
        [encoded] = (await http.post("/encode", json=as_json(plain))).json()["payloads"]
    sealed = Payload(
        metadata={name: base64.b64decode(value) for name, value in encoded["metadata"].items()},
        data=base64.b64decode(encoded["data"]),
    )
    assert sealed.metadata["encoding"] == b"binary/encrypted"
    assert await converter.decode([sealed]) == ["hello"]


async def test_a_payload_that_can_not_be_read_says_why_and_hides_no_other(settings, tmp_path):
    """A lost blob, a foreign key, damaged data: each in its place."""
    [lost, good] = await data_converter(settings).encode([SECRET, "good"])
    [blob] = (tmp_path / "store").glob("*/*")
    blob.unlink()
    foreign = Payload(metadata={"encoding": b"binary/encrypted", "encryption-key-id": b"k9"}, data=b"?" * 40)
    damaged = Payload(metadata=good.metadata, data=good.data[:-1] + b"?")
    async with asking(settings) as http:
        first, second, third, fourth = values(await http.post("/decode", json=as_json(lost, foreign, damaged, good)))
    assert blob.name in first[UNREADABLE_KEY] and "'k9'" in second[UNREADABLE_KEY]
    assert "not what was encrypted" in third[UNREADABLE_KEY] and fourth == "good"


async def test_a_request_s_payloads_share_one_budget(settings):
    """Each may unpack to much; together they don't fill the memory. What is left out says why."""
    large = Payload(metadata={"encoding": b"json/plain"}, data=b'"' + b"x" * 40_000_000 + b'"')
    bomb = Payload(metadata={"encoding": b"binary/zlib"}, data=zlib.compress(large.SerializeToString()))
    async with asking(settings) as http:
        first, *rest = values(await http.post("/decode", json=as_json(*[bomb] * 20)))
    assert len(first) == 40_000_000 and all("larger than" in one[UNREADABLE_KEY] for one in rest)


async def test_what_is_unpacked_in_vain_counts(settings):
    """Else a request with hundreds of bombs would keep the endpoint from others for minutes."""
    large = Payload(metadata={"encoding": b"json/plain"}, data=bytes(64 * 1024 * 1024))
    whole = zlib.compress(large.SerializeToString())
    small = zlib.compress(Payload(metadata={"encoding": b"json/plain"}, data=b'"small"').SerializeToString())
    packed = [Payload(metadata={"encoding": b"binary/zlib"}, data=data) for data in (small, whole, whole, small)]
    [good] = await data_converter(settings).encode(["good"])
    async with asking(settings) as http:
        first, *bombs, late, last = values(await http.post("/decode", json=as_json(*packed, good)))
    assert (first, last) == ("small", "good")
    assert all("larger than" in one[UNREADABLE_KEY] for one in [*bombs, late])


@pytest.mark.parametrize(
    ("headers", "status"),
    [(BEARER, 200), ({"Authorization": f"bearer {TOKEN}"}, 200), ({}, 401), ({"Authorization": TOKEN}, 401),
     ({"Authorization": "Bearer "}, 401), ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
     ({"Authorization": f"Basic {TOKEN}"}, 401)],
    ids=["token", "any-case", "none", "no-scheme", "empty", "shorter", "basic"],
)  # fmt: skip
async def test_only_known_tokens_get_in(settings, tokens, headers, status):
    """Nothing is decoded for anybody else, and nothing encoded."""
    async with asking(settings, bearer_tokens(tokens)) as http:
        for path in ("/decode", "/encode"):
            assert (await http.post(path, json=as_json(), headers=headers)).status_code == status


async def test_only_the_ui_s_pages_may_ask(settings):
    """Its preflight is answered, and its requests; another page's are refused and not even readable to it."""
    async with asking(settings) as http:
        for origin, let_in in ORIGINS:
            wish = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            wish["Access-Control-Request-Headers"] = "content-type,x-namespace,authorization"
            preflight = await http.options("/decode", headers=wish)
            answer = await http.post("/decode", json=as_json(), headers={"Origin": origin})
            assert (preflight.status_code == 200) == let_in
            assert (answer.status_code == 200) == let_in
            assert answer.headers.get("access-control-allow-origin") == (origin if let_in else None)


async def test_an_open_endpoint_answers_to_loopback_names_only(settings):
    """A page that gives its own name the address of this machine gets nothing."""
    async with asking(settings, hosts=["127.0.0.1"]) as http:
        for host, status in (("127.0.0.1:8081", 200), ("evil.example:8081", 400)):
            answer = await http.post("/decode", json=as_json(), headers={"Host": host})
            assert answer.status_code == status


async def test_a_check_of_one_s_own_decides(settings):
    """It may be a coroutine; only True lets in."""

    async def has_team(headers):
        return headers.get("x-team")

    async def is_ops(headers):
        return headers.get("x-team") == "ops"

    async with asking(settings, has_team) as http:
        assert (await http.post("/decode", json=as_json(), headers={"X-Team": "ops"})).status_code == 401
    async with asking(settings, is_ops) as http:
        assert (await http.post("/decode", json=as_json(), headers={"X-Team": "ops"})).status_code == 200


async def test_requests_that_are_none_are_refused(settings):
    """No JSON, another shape, too large: a sentence, and no traceback."""
    async with asking(settings) as http:
        for body in (b"", b"{", b"\xff", b"[" * 99_999, b'{"payloads": [{"data": 7}]}', b'{"other": 1}'):
            assert (await http.post("/decode", content=body)).status_code == 400, body
        assert (await http.post("/decode", content=b" " * (LARGEST_BYTES + 1))).status_code == 413
        assert (await http.get("/decode")).status_code == 405


@pytest.mark.parametrize("text", ["", "# none\n", "short\n", f"{TOKEN}\nshort\n"])
def test_a_token_file_without_good_tokens_is_refused(tmp_path, text):
    """An empty one would let nobody in, a short one anybody who guesses."""
    (tmp_path / "tokens").write_text(text)
    with pytest.raises(AccessSettingsError, match="at least 20 characters"):
        bearer_tokens(tmp_path / "tokens")


def test_a_token_in_the_place_of_its_file_is_not_shown():
    """What can't be read may be the secret itself."""
    with pytest.raises(AccessSettingsError, match="--token-file") as raised:
        bearer_tokens(Path(TOKEN))
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize("name", ["json", "json:nothing", "no.such:function", "json:__name__"])
def test_a_check_that_is_no_function_is_refused(name):
    """By its name, before anything is served."""
    with pytest.raises(AccessSettingsError, match=name):
        named_check(name)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "countersign.agent_ops", "codec-server", "--ui-origin", UI, *words]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "--token-file, --check and --open"),
        (("--open", "--check", "a:b"), "one of"),
        (("--open", "--host", "0.0.0.0"), "loopback"),
        (("--open", "--ui-origin", "http://localhost:8233/"), "without a path"),
        (("--open", "--ui-origin", "http://localhost:99999"), "without a path"),
        (("--open", "--ui-origin", "http://[::1"), "without a path"),
        (("--token-file", "/no/such"), "/no/such"),
    ],
)
def test_the_command_refuses_what_is_not_safe(words, complaint):
    """One line, exit code 2."""
    ended = subprocess.run(command(*words), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and complaint in ended.stderr and len(ended.stderr.splitlines()) == 1


def test_a_port_in_use_is_named():
    """And nothing says that it serves."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--open", "--port", str(taken.getsockname()[1]))
        ended = subprocess.run(command(*words), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and len(ended.stderr.splitlines()) == 1
    assert f"can't listen on 127.0.0.1:{words[2]}" in ended.stderr


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://t.example.com:443", "https://t.example.com"),
        ("http://t.example.com:443", "http://t.example.com:443"),
        ("HTTP://Temporal.Example.com:80", "http://temporal.example.com"),
        ("http://[::1]:8233", "http://[::1]:8233"),
        ("http://u:p@host", None),
        ("http://host/", None),
        ("ftp://host", None),
        ("host:8233", None),
    ],
)
def test_an_origin_is_held_as_browsers_send_it(text, origin):
    """Else each of its requests would be refused."""
    assert origin_of(text) == origin


def test_the_command_serves(settings, tokens):
    """With the workers' own variables."""
    port = free_port()
    environment = {**os.environ, "COUNTERSIGN_ENCRYPTION_KEYS": str(settings.encryption_keys)}
    process = subprocess.Popen(command("--port", str(port), "--token-file", str(tokens)), env=environment)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = httpx.post(f"http://127.0.0.1:{port}/decode", json=as_json(), headers=BEARER, trust_env=False)
                break
            except httpx.ConnectError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
        assert answer.status_code == 200
    finally:
        process.terminate()
        process.wait()
