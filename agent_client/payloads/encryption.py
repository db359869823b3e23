"""One payload encrypted and decrypted, with AES-256-GCM.

The form is that of Temporal's own samples (encoding "binary/encrypted", the key's id beside it, the nonce before
the ciphertext), so that codecs in other languages are at hand; the check value beside the id is ours.
"""

from temporalio.api.common.v1 import Payload

from countersign.agent_client.payloads.errors import DecryptionError, PayloadSettingsError
from countersign.agent_client.payloads.guarding import AGAIN
from countersign.agent_client.payloads.keys import KEY_ID, Key, KeyRing
from countersign.agent_client.payloads.unreadable import unreadable
from countersign.agent_core.extras import how_to_install

ENCRYPTED = b"binary/encrypted"
_ID, _CHECK = "encryption-key-id", "encryption-key-check"
_NONCE_BYTES, _TAG_BYTES = 12, 16


def check_installed() -> None:
    """Fail early if there is nothing to encrypt with.

    Raises:
        PayloadSettingsError: With what to install.
    """
    try:
        import cryptography  # noqa: F401  # used below, when needed
    except ImportError:
        raise PayloadSettingsError(f"encryption needs a library; {how_to_install('encryption')}") from None


def encrypted(payload: Payload, key: Key) -> Payload:
    """The payload, readable with the key only."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    plain = payload.SerializeToString(deterministic=True)
    nonce = key.nonce(plain)
    return Payload(
        metadata={"encoding": ENCRYPTED, _ID: key.id.encode(), _CHECK: key.check.encode()},
        data=nonce + AESGCM(key.secret).encrypt(nonce, plain, None),
    )


def decrypted(payload: Payload, keys: KeyRing) -> Payload:
    """What was encrypted; a marker if it is damaged or was never ours.

    Raises:
        DecryptionError: If the key is not here, or is another one of the same id.
    """
    key_id = payload.metadata.get(_ID, b"").decode(errors="replace")
    if not KEY_ID.fullmatch(key_id):
        return unreadable("it is encrypted, and names no key")
    key = keys.get(key_id)
    if key is None:
        raise DecryptionError(f"a payload is encrypted with key {key_id!r}: {_lacking(keys)}; {AGAIN}")
    check = payload.metadata.get(_CHECK)
    if check is not None and check != key.check.encode():
        raise DecryptionError(
            f"a payload is encrypted with another key than the {key_id!r} in {keys.source}; "
            f"put the right one there, and give new keys new ids: {AGAIN}"
        )
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
    if len(sealed) < _TAG_BYTES:
        return unreadable("it is encrypted, and cut off")
    try:
        return Payload.FromString(AESGCM(key.secret).decrypt(nonce, sealed, None))
    except InvalidTag:
        return unreadable(f"it is not what was encrypted with key {key_id!r}: damaged, or from another key of that id")
    except Exception:  # of a protobuf parser: whoever has the key encrypted something else
        return unreadable(f"what is encrypted with key {key_id!r} is no payload")


def _lacking(keys: KeyRing) -> str:
    if not keys.keys:
        return "this process has no keys; set COUNTERSIGN_ENCRYPTION_KEYS to the workers' file"
    held = ", ".join(key.id for key in keys.keys)
    return f"{keys.source} holds only {held}; add that key there, after the first one"
