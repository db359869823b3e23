"""The gate in front of the engine's tracing: headers that it can't read are dropped.

It decodes the header of every signal, update and query, whoever sent it, and an error there would fail the
workflow task for ever.
"""

import json
from collections.abc import Mapping
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.worker import (
    HandleQueryInput,
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

HEADER = "_tracer-data"


class TraceHeaderGuard(ClientInterceptor, Interceptor):
    """Interceptor for clients of workers; stands before the tracing one."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See temporalio."""
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    async def handle_signal(self, input: HandleSignalInput) -> None:
        input.headers = _readable(input.headers)
        await super().handle_signal(input)

    async def handle_query(self, input: HandleQueryInput) -> Any:
        input.headers = _readable(input.headers)
        return await super().handle_query(input)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        input.headers = _readable(input.headers)
        super().handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        input.headers = _readable(input.headers)
        return await super().handle_update_handler(input)


def _readable(headers: Mapping[str, Payload]) -> Mapping[str, Payload]:
    if HEADER not in headers or _is_carrier(headers[HEADER]):
        return headers
    return {name: payload for name, payload in headers.items() if name != HEADER}


def _is_carrier(payload: Payload) -> bool:
    """True for what propagators take: an object of texts, or of lists of them."""
    if payload.metadata.get("encoding") != b"json/plain":
        return False
    try:
        carrier = json.loads(payload.data)
    except (ValueError, RecursionError):
        return False
    return isinstance(carrier, dict) and all(map(_is_carried, carrier.values()))


def _is_carried(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(text, str) for text in texts)
