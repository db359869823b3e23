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

from countersign.agent_core.errors import reason_of
from countersign.agent_core.wire import PROMPT_SIGNAL, RESPOND_SIGNAL, STOP_SIGNAL

LARGEST_BYTES = 4 * 1024 * 1024
"""More than any value of ours weighs, and than Temporal takes. What is larger came out of storage or of a
compression, and would take fifty times its size in memory."""

_ONE_ARGUMENT = frozenset({PROMPT_SIGNAL, RESPOND_SIGNAL, STOP_SIGNAL})


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
    except Exception as error:
        raise ValueError(f"it can't be decoded: {type(error).__name__}: {reason_of(error)}") from error
