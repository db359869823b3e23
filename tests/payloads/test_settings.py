"""Stores and key files that can't be used: the error names the place and the next step, and never a key."""

import base64

import pytest

from countersign.agent_client.payloads import PayloadSettings, data_converter, payload_settings
from countersign.agent_client.payloads.errors import PayloadSettingsError
from countersign.agent_client.payloads.keys import load_keys
from countersign.agent_client.payloads.settings import Location

GOOD = base64.b64encode(bytes(range(32))).decode()  # the same in every test process: it stands in names
URL_SAFE = GOOD.translate(str.maketrans("+/", "-_", "="))
"""Looks like an id."""

SHORT = base64.b64encode(b"not thirty-two").decode()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/var/lib/store", "file:///folder"),
        ("file://var/lib", "three slashes"),
        ("file:///", "names no folder"),
        ("s3:///prefix", "names no bucket"),
        ("ftp://host/x", "file:///folder"),
        ("s3://bucket?region=x", "file:///folder"),
    ],
)
def test_a_store_that_is_none_is_named(monkeypatch, text, words):
    """With the forms that there are."""
    monkeypatch.setenv("COUNTERSIGN_STORAGE", text)
    with pytest.raises(PayloadSettingsError, match="COUNTERSIGN_STORAGE") as raised:
        payload_settings()
    assert words in str(raised.value) and text in str(raised.value)


def test_stores_are_read_in_order():
    """Buckets with and without prefix; the first one is written to."""
    settings = PayloadSettings(storage="s3://new/a/b, gs://old,file:///var/lib/my%20store")
    assert settings.locations == [
        Location("s3", "new", "a/b/"), Location("gs", "old"), Location("file", "/var/lib/my store"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [f"k1 {GOOD}\n# a comment\n\nk0 {GOOD} # old\n", f'{{"k1": "{GOOD}", "k0": "{GOOD}"}}'],
    ids=["lines", "json"],
)
def test_keys_come_in_the_order_of_the_file(tmp_path, text):
    """As lines or as a JSON object; the first one encrypts."""
    file = tmp_path / "keys"
    file.write_text(text)
    assert [key.id for key in load_keys(file).keys] == ["k1", "k0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no encryption key"),
        (GOOD, "line 1"),
        (f"k1 {GOOD}\nk2 {SHORT}", "line 2"),
        ("k1 not/base64!", "line 1"),
        (f"k/1 {GOOD}", "line 1"),
        (f"{GOOD} 2026-11", "line 1"),
        (f"k1 {GOOD}\n{URL_SAFE} 2026-11", "line 2"),
        (f'{{"k1": "{GOOD}", "{URL_SAFE}": "2026-11"}}', "entry 2"),
        (f"k1 {GOOD}\nk1 {GOOD}", "several keys of id 'k1'"),
        ('{"k1": 7}', "ids and keys in base64"),
        ("{", "not valid JSON"),
    ],
)
def test_a_key_file_that_can_not_be_used_says_where(tmp_path, text, words):
    """The line or the entry, the way to make a key, and nothing of a key, also if it stands in its id's place."""
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(PayloadSettingsError) as raised:
        load_keys(file)
    assert words in str(raised.value) and str(file) in str(raised.value)
    assert not any(secret in str(raised.value) for secret in (GOOD, SHORT, URL_SAFE))


def test_a_missing_key_file_is_named(tmp_path):
    """With the variable that named it."""
    with pytest.raises(PayloadSettingsError, match=r"no-such.*COUNTERSIGN_ENCRYPTION_KEYS"):
        data_converter(PayloadSettings(encryption_keys=tmp_path / "no-such"))


def test_an_empty_variable_of_the_keys_is_refused_as_such(monkeypatch):
    """A process whose keys were forgotten does not start without them, and says what is wrong."""
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", "")
    with pytest.raises(PayloadSettingsError, match=r"COUNTERSIGN_ENCRYPTION_KEYS is empty; name the file"):
        data_converter()


@pytest.mark.parametrize("text", [f"2026-11 {GOOD}", GOOD, URL_SAFE, f"/{GOOD}"])
def test_a_key_in_the_place_of_its_file_is_not_shown(text):
    """Only an absolute path is, for whoever mistyped one."""
    with pytest.raises(PayloadSettingsError, match="COUNTERSIGN_ENCRYPTION_KEYS") as raised:
        data_converter(PayloadSettings(encryption_keys=text))
    assert GOOD not in str(raised.value) and URL_SAFE not in str(raised.value)
