"""Keeps keys out of error texts: those go into histories, logs and pages that many may read."""

import os
import re

_NAMED = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
_SHORTEST_CHARS = 6

_SHAPED = re.compile(
    r"(?P<url>://)[^/\s@]+@"  # a name and password in an address
    r"|(?P<bearer>Bearer\s+)[^\s'\"\\]+"
    r"|\b(?P<prefix>sk|pk|rk|xai|gsk|AKIA|ASIA)(?=[-_A-Z0-9])[-_A-Za-z0-9]{8,}"
)


def without_secrets(text: str) -> str:
    """The text without the values of variables that sound like keys, and without what looks like one."""
    for name, value in os.environ.items():
        if _NAMED.search(name):
            for form in {value, value.strip(), repr(value)[1:-1]}:
                if len(form) >= _SHORTEST_CHARS:
                    text = text.replace(form, "***")
    return _SHAPED.sub(lambda found: f"{found['url'] or found['bearer'] or ''}***{'@' if found['url'] else ''}", text)
