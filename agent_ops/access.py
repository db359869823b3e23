"""Who may use the codec endpoint. A check takes a request's headers and says yes or no.

Whoever passes can read whatever the keys open and the stores hold.
"""

import hashlib
import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path

from countersign.agent_client.secret_files import read_secrets
from countersign.agent_core.errors import CountersignError

Check = Callable[[Mapping[str, str]], bool | Awaitable[bool]]
"""Takes headers (names in lower case). A coroutine may do I/O, like asking an identity provider."""

SHORTEST_TOKEN = 20


class AccessSettingsError(CountersignError):
    """A token file or a check that can't be used as given."""


def bearer_tokens(file: Path) -> Check:
    """A check that knows these tokens: `Authorization: Bearer TOKEN`.

    Args:
        file: One token a line; empty lines and those that begin with # don't count.

    Raises:
        AccessSettingsError: If it can't be read or holds none.
    """
    try:
        lines = read_secrets(file, "--token-file").splitlines()
    except ValueError as error:
        raise AccessSettingsError(f"the tokens can't be read ({error})") from None
    tokens = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not tokens or any(len(token) < SHORTEST_TOKEN for token in tokens):
        raise AccessSettingsError(
            f"{file} must hold tokens of at least {SHORTEST_TOKEN} characters, one a line; "
            "make one with: openssl rand -hex 32"
        )
    known = [hashlib.sha256(token.encode()).digest() for token in tokens]

    def check(headers: Mapping[str, str]) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(token.strip().encode()).digest()
        # All of them, each in constant time: how long it takes tells nothing of any.
        matches = [hmac.compare_digest(given, one) for one in known]
        return scheme.lower() == "bearer" and any(matches)

    return check


def named_check(name: str) -> Check:
    """A check of yours, as "package.module:function".

    Raises:
        AccessSettingsError: If there is no such function.
    """
    module, _, function = name.partition(":")
    try:
        found: Check = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise AccessSettingsError(
            f"--check {name!r} can't be loaded ({error}); give package.module:function"
        ) from error
    if not callable(found):
        raise AccessSettingsError(f"--check {name!r} is no function; give package.module:function")
    return found


def anybody(headers: Mapping[str, str]) -> bool:
    """Everybody who can reach it; for a loopback address on a machine of one's own."""
    return True


async def passes(check: Check, headers: Mapping[str, str]) -> bool:
    """Whether a check says yes; only True is yes."""
    verdict = check(headers)
    return (await verdict if inspect.isawaitable(verdict) else verdict) is True
