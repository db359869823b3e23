"""Where metrics and traces go: the engine's runtime and the tracing interceptor, made from settings.

Metrics are the engine's own and ours (`workflows/metering.py`, `serving/fleet_metrics.py`), all through one
runtime. Traces are the engine's.
"""

import asyncio
import os
from typing import Any

from temporalio.client import Interceptor
from temporalio.runtime import OpenTelemetryConfig, PrometheusConfig, Runtime, TelemetryConfig

from countersign.agent_core.errors import CountersignError
from countersign.agent_core.extras import how_to_install
from countersign.serving.settings import WorkerSettings
from countersign.workflows.metering import DECISION_SECONDS
from countersign.workflows.trace_headers import TraceHeaderGuard

_DAY_S = 86_400.0
DECISION_BUCKETS_S = (
    1.0,
    10.0,
    60.0,
    300.0,
    1_800.0,
    3_600.0,
    4 * 3_600.0,
    _DAY_S,
    3 * _DAY_S,
    7 * _DAY_S,
    30 * _DAY_S,
)
"""People answer within seconds or weeks."""


class TelemetryError(CountersignError):
    """Metrics or traces can't go where the settings say."""


def runtime_for(settings: WorkerSettings) -> Runtime | None:
    """The engine's runtime with metrics; None for the default one, without.

    Raises:
        TelemetryError: Naming the address.
    """
    metrics: PrometheusConfig | OpenTelemetryConfig
    buckets = {DECISION_SECONDS: DECISION_BUCKETS_S}
    if settings.metrics_address is not None:
        metrics = PrometheusConfig(
            settings.metrics_address, durations_as_seconds=True, histogram_bucket_overrides=buckets
        )
    elif settings.metrics_otlp_url is not None:
        # As OpenTelemetry's own exporters: with a path it is HTTP, without one gRPC.
        over_http = settings.metrics_otlp_url.rstrip("/").endswith("/v1/metrics")
        metrics = OpenTelemetryConfig(
            settings.metrics_otlp_url, durations_as_seconds=True, http=over_http, histogram_bucket_overrides=buckets
        )
    else:
        return None
    try:
        return Runtime(telemetry=TelemetryConfig(metrics=metrics))
    except (RuntimeError, ValueError) as error:
        where = settings.metrics_address or settings.metrics_otlp_url
        raise TelemetryError(
            f"metrics can't be served at or sent to {where} ({error}); set --metrics-address or --metrics-otlp-url"
        ) from error


class Traces:
    """Spans of what the worker does, sent by OTLP as the OTEL_* variables say; or of nothing.

    Args:
        settings: Whether they are wanted.

    Raises:
        TelemetryError: If they are and OpenTelemetry is not installed.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self.interceptors: list[Interceptor] = []
        self._provider: Any = None
        if not settings.traces:
            return
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from temporalio.contrib.opentelemetry import TracingInterceptor
        except ImportError as error:
            raise TelemetryError(
                f"--traces needs OpenTelemetry, which is not installed ({error}); {how_to_install('otel')}"
            ) from error
        named = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", "countersign-worker")})
        self._provider = TracerProvider(resource=named.merge(OTELResourceDetector().detect()))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(self._provider)
        # Sessions are started from anywhere, mostly without a span of their own.
        self.interceptors += [TraceHeaderGuard(), TracingInterceptor(always_create_workflow_spans=True)]

    async def flush(self) -> None:
        """Send what has not been sent; takes as long as the exporter's timeout at most."""
        if self._provider is not None:
            await asyncio.to_thread(self._provider.shutdown)
