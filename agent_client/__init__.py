"""Client code and the countersign command; the only door to Temporal from outside the worker.

Sessions are started by the name of their workflow. Of workflows and activities, nothing is needed but
the words that a session shows in the Temporal UI, and the list of its search attributes.

The names for client code stand in `countersign.client`, and only there. They can be had from this room as well,
and load when they are first used, so that the command starts without Temporal's client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from countersign.client import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if not name[:1].isupper():  # a module of this room, which `client` may be about to import
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("countersign.client"), name)
