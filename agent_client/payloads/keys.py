"""The keys of the encryption, from a file. A key is never shown, not in an error either."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from countersign.agent_client.payloads.errors import PayloadSettingsError
from countersign.agent_client.secret_files import read_secrets

KEY_BYTES = 32
KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
MAKE = 'one line per key, like: printf "2026-11 %s\\n" "$(openssl rand -base64 32)"'


@dataclass(frozen=True)
class Key:
    """A key of AES-256.

    Attributes:
        id: Its name; stands beside whatever it encrypts.
        secret: 32 bytes.
    """

    id: str
    secret: bytes = field(repr=False)

    @property
    def check(self) -> str:
        """Tells this key from another one of the same id; reveals nothing of it."""
        return hmac.digest(self.secret, b"countersign key check", hashlib.sha256)[:8].hex()

    def nonce(self, plaintext: bytes) -> bytes:
        """12 bytes made from key and plaintext: equal values become equal blobs, and are stored once.

        Cut to 96 bits, it comes twice for different values as a random one would: with a probability of about
        n^2 / 2^97 after n values. NIST SP 800-38D, 8.3, allows 2^32 values for a key, which makes 2^-33.
        """
        own = hmac.digest(self.secret, b"countersign payload nonce", hashlib.sha256)
        return hmac.digest(own, plaintext, hashlib.sha256)[:12]


@dataclass(frozen=True)
class KeyRing:
    """Keys by their ids.

    Attributes:
        keys: The first one encrypts, all of them decrypt; none if encryption is off.
        source: The file that they are from, for errors.
    """

    keys: Sequence[Key] = ()
    source: Path | None = None

    @property
    def first(self) -> Key | None:
        """The key that encrypts, if there is one."""
        return self.keys[0] if self.keys else None

    def get(self, key_id: str) -> Key | None:
        """The key of that id, if it is here."""
        return next((key for key in self.keys if key.id == key_id), None)


def load_keys(file: Path) -> KeyRing:
    """Keys from a file: lines `id base64`, with comments after #; or a JSON object {"id": "base64", ...}.

    Raises:
        PayloadSettingsError: If the file or a key can't be used, with the line.
    """
    try:
        text = read_secrets(file, "COUNTERSIGN_ENCRYPTION_KEYS")
    except ValueError as error:
        raise PayloadSettingsError(f"the encryption keys can't be read ({error})") from None
    pairs = _from_json(file, text) if text.lstrip().startswith("{") else _from_lines(file, text)
    keys = [_key(file, where, key_id, encoded) for where, key_id, encoded in pairs]
    if not keys:
        raise PayloadSettingsError(f"{file} holds no encryption key; put in {MAKE}")
    doubles = {key.id for key in keys if sum(other.id == key.id for other in keys) > 1}
    if doubles:
        raise PayloadSettingsError(f"{file} holds several keys of id {sorted(doubles)[0]!r}; give each its own")
    return KeyRing(keys, file)


def _from_lines(file: Path, text: str) -> list[tuple[str, str, str]]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2:
            raise PayloadSettingsError(f"line {number} of {file} is not a key's id and the key; put in {MAKE}")
        found.append((f"line {number}", words[0], words[1]))
    return found


def _from_json(file: Path, text: str) -> list[tuple[str, str, str]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError as error:
        raise PayloadSettingsError(f'{file} is not valid JSON ({error}); give {{"id": "base64", …}}') from error
    if not all(isinstance(encoded, str) for _, encoded in pairs):
        raise PayloadSettingsError(f'{file} must be an object of ids and keys in base64: {{"id": "base64", …}}')
    return [(f"entry {number}", key_id, encoded) for number, (key_id, encoded) in enumerate(pairs, start=1)]


def _key(file: Path, where: str, key_id: str, encoded: str) -> Key:
    # Neither word is shown: they may be swapped.
    if not KEY_ID.fullmatch(key_id):
        raise PayloadSettingsError(
            f"{where} of {file}: its id is not 1 to 64 letters, digits, dots, underscores and hyphens; put in {MAKE}"
        )
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise PayloadSettingsError(
            f"{where} of {file}: what stands behind its id is not {KEY_BYTES} bytes in base64; put in {MAKE}"
        )
    return Key(key_id, secret)
