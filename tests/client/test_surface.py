"""The public names of client code: these, and enough to name whatever is given and got."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel

from countersign import client, payloads

DOORS = {client.AgentClient, client.SessionHandle}


def test_the_names_of_client_code_are_these():
    """A name that is added or taken away is meant to be."""
    assert set(client.__all__) == set(
        """
        AgentClient SessionHandle Limits
        Question ShownCall Answer AnswerReceipt AcceptedAnswer
        Outcome SessionResult Message Usage ErrorInfo StopReport AuditEntry SessionEvent PendingCall WaitingCall Build
        SessionStatus SessionSummary FleetView
        ClientError AccessDeniedError AgentRunError ConnectionFailedError NoReplyError NoWorkerError
        SessionEndedError SessionExistsError SessionNotFoundError SessionUnreadableError
        AnswerRefused PayloadTooLargeError
        """.split()
    )


def test_the_names_of_payloads_are_these():
    """What the pages on storage and encryption teach, and the errors."""
    assert set(payloads.__all__) == set(
        """
        data_converter PayloadSettings
        PayloadError PayloadSettingsError StorageError NotHereError DecryptionError
        """.split()
    )


def ours(hint: Any) -> Iterator[type]:
    """Classes of ours in an annotation."""
    if isinstance(hint, type) and hint.__module__.startswith("countersign."):
        yield hint
    for part in hint if isinstance(hint, list) else get_args(hint):
        yield from ours(part)


def hints(kind: type) -> list[Any]:
    """What a door's methods take and return, or of what a value consists."""
    if kind in DOORS:
        methods = [method for name, method in inspect.getmembers(kind, callable) if not name.startswith("_")]
        return [hint for method in methods for hint in get_type_hints(method).values()]
    if issubclass(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values()]
    return list(get_type_hints(kind).values())


def test_whatever_is_given_or_got_has_a_public_name():
    """A program can annotate its own functions without a look into our rooms."""
    found, due = set(), set(DOORS)
    while due:
        kind = due.pop()
        found.add(kind)
        due |= {part for hint in hints(kind) for part in ours(hint)} - found
    assert {kind.__name__ for kind in found} <= set(client.__all__)
    assert {client.Limits, client.AcceptedAnswer, client.ShownCall} <= found  # it looked
