"""The gate in front of signals: whatever is sent, a workflow's handlers get exactly one argument.

Temporal calls a handler with as many arguments as the sender gave; one too few or too many would
fail the workflow task for ever. Here such a signal becomes a `WrongCount` that the handler records.
"""

from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.worker import (
    HandleSignalInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from countersign.agent_core.errors import UnreadableHereError, reason_of
from countersign.agent_core.wire import PROMPT_SIGNAL, RESPOND_SIGNAL, STOP_SIGNAL

UNREADABLE_MARK = "unreadable"
"""Begins the marks of signals that were refused because their worker lacked a key or a blob (2026-11-30)."""

UNREADABLE_TEXT = (
    "it can't be decoded: it is encrypted or stored elsewhere, and the worker that it came to lacked the key, the "
    "store or the value; that worker's log says which. Send it again when all workers have it"
)

LARGEST_BYTES = 4 * 1024 * 1024
"""More than any value of ours weighs, and than Temporal takes. What is larger came out of storage or of a
compression, and would take fifty times its size in memory."""

_ONE_ARGUMENT = frozenset({PROMPT_SIGNAL, RESPOND_SIGNAL, STOP_SIGNAL})


class NotReadAgainError(Exception):
    """A signal that was taken can't be read by this worker. It fails the workflow's task, which is tried again."""


@dataclass(frozen=True)
class WrongCount:
    """Stands for the arguments of a signal that came with none or several."""

    count: int


class IntakeGuard(Interceptor):
    """Worker interceptor; every worker that serves our workflows needs it."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See temporalio."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:
        if input.signal in _ONE_ARGUMENT and len(input.args) != 1:
            input.args = [WrongCount(len(input.args))]
        await super().handle_signal(input)


def decoded(raw: Any) -> Any:
    """The JSON value of an argument.

    Raises:
        UnreadableHereError: If this worker lacks the key or the blob that it takes.
        ValueError: If it can't be decoded, saying why.
    """
    if isinstance(raw, WrongCount):
        raise ValueError(f"it came with {raw.count} arguments; send exactly one")
    if not isinstance(raw, RawValue):
        return raw
    if len(raw.payload.data) > LARGEST_BYTES:
        raise ValueError(f"it is {len(raw.payload.data):,} bytes; at most {LARGEST_BYTES:,} bytes are taken")
    try:
        hint: Any = Any  # without a type, a worker's converter hands back what it can't decode
        return workflow.payload_converter().from_payload(raw.payload, hint)
    except UnreadableHereError:
        raise
    except Exception as error:
        raise ValueError(f"it can't be decoded: {type(error).__name__}: {reason_of(error)}") from error


class Signals:
    """The signals of a run that carry something, read by all of its workers alike.

    One whose key or blob a worker lacks may be a stranger's, and must not stop the session; it may also be a
    person's answer, and the worker badly set up. So it is refused once, when it comes, and a mark in the history
    says so: all workers keep to that. What was taken when it came is never refused later on: a worker that can't
    read it fails the task, and another one goes on.
    """

    def __init__(self) -> None:
        self._count = 0

    def decoded(self, raw: Any) -> Any:
        """The JSON value of the next signal's argument.

        Raises:
            ValueError: If it can't be decoded, or could not when it came, saying why.
            NotReadAgainError: If it was taken, and this worker can't read it; the task is tried again.
        """
        self._count += 1
        mark, replaying = f"{UNREADABLE_MARK}-{self._count}", workflow.unsafe.is_replaying()
        if replaying and workflow.patched(mark):
            raise ValueError(UNREADABLE_TEXT)
        try:
            return decoded(raw)
        except UnreadableHereError as error:
            if replaying:
                raise NotReadAgainError(f"a worker has taken this signal, this one can't read it: {error}") from error
            workflow.logger.warning("a signal was refused: %s", error)
            workflow.deprecate_patch(mark)  # "deprecated": who can read it meanwhile may find the mark unasked
            raise ValueError(UNREADABLE_TEXT) from error
