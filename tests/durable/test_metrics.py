"""What a worker process exports: counts of one session's decisions, gauges of all, health, traces."""

import asyncio
import gzip
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from temporalio.client import Client
from temporalio.contrib.opentelemetry import TracingInterceptor
from tests.durable.test_tool_crashes import until_effects
from tests.durable.test_waiting import questions

from countersign.agent_client.dev_server import DevServer, free_port
from countersign.agent_core.errors import AnswerRefused
from countersign.client import AgentClient
from countersign.serving import health as health_room
from countersign.serving.health import Health


def fetched(url: str) -> tuple[int, str]:
    """Status and body of a GET; 0 if nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


async def until(url: str, status: int, words: str = "", within_s: float = 60) -> str:
    """Wait for an answer."""
    async with asyncio.timeout(within_s):
        while (got := await asyncio.to_thread(fetched, url))[0] != status or words not in got[1]:
            await asyncio.sleep(0.05)
    return got[1]


def ours(metrics: str, agent: str = "per-call") -> dict[tuple[str, str], float]:
    """Our samples by name and the label that tells them apart: decision, code, kind or stop reason, else "".

    One agent's, so that each stands there once: what is counted must go on in the series that began at 0.
    """
    found: dict[tuple[str, str], float] = {}
    for line in metrics.splitlines():
        if line.startswith("countersign_") and "_bucket" not in line:
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("} ")
            known = dict(item.split("=", 1) for item in labels.split(","))
            if known.get("agent") == f'"{agent}"':
                own = next((known[key] for key in ("decision", "code", "kind", "stop_reason") if key in known), '""')
                key = (name, own.strip('"'))
                assert key not in found, f"{line}: a second series of the same, with other labels"
                found[key] = float(value)
    return found


async def test_a_scrape_finds_what_people_decided(lab):
    """An approval, a denial, an expiry, a refused answer, a stop: counted as they come, over runs and a replay."""
    flags = [f"--metrics-address=127.0.0.1:{free_port()}", "--fleet-metrics-s", "0.2"]
    url = f"http://{flags[0].partition('=')[2]}/metrics"
    worker = lab.worker("lab.agents", None, *flags)
    effects, age = f"effects={lab.effects_file}", ("countersign_oldest_question_age_seconds", "")
    session = await lab.start(worker, "per-call", f"{effects} effect:a effect:b", continue_after_events=15)
    first, second = await questions(session, 2)
    async with asyncio.timeout(60):
        while (shown := ours(await until(url, 200))).get(("countersign_questions_open", "")) != 2 or not shown[age]:
            await asyncio.sleep(0.1)
    assert shown["countersign_sessions_waiting", ""] == 1
    with pytest.raises(AnswerRefused):
        await session.answer(("int-no-such", "y"))
    await session.answer((first.id, "y"))
    await session.answer((second.id, "n"))
    await session.result()
    await (await lab.start(worker, "per-call", f"{effects} effect:c", deadline_s=0.5)).result()
    stopped = await lab.start(worker, "per-call", f"{effects} effect:d")
    await questions(stopped, 1)
    await stopped.stop()
    await stopped.result()
    begun = (await lab.history_of(session.id)).events[0].workflow_execution_started_event_attributes
    assert begun.continued_execution_run_id, "the counts go on from run to run"
    counts = ours(await until(url, 200, "countersign_turns_total"))
    expected = {
        ("countersign_questions_asked_total", ""): 4,
        ("countersign_answers_total", "approved"): 1,
        ("countersign_answers_total", "denied"): 1,
        ("countersign_decision_seconds_count", "approved"): 1,
        ("countersign_decision_seconds_count", "denied"): 1,
        ("countersign_questions_expired_total", ""): 1,
        ("countersign_questions_withdrawn_total", ""): 1,
        ("countersign_answers_refused_total", "unknown_interrupt"): 2,  # the client sends it once more
        ("countersign_turns_total", "end_turn"): 2,
        ("countersign_turns_total", "cancelled"): 1,
    }
    assert {key: counts.get(key) for key in expected} == expected
    assert counts["countersign_model_tokens_total", "output"] > 0
    assert counts["countersign_unknown_outcomes_total", ""] == 0
    assert "temporal_workflow_task_execution_latency" in await until(url, 200)
    worker.restart()
    assert await session.audit(), "a query replays the whole history on the new worker"
    again = ours(await until(url, 200))
    assert {key for key, value in again.items() if value} == set(), "a replay counts nothing"
    assert ("countersign_turns_total", "failed") in again, "the counters of a new process begin at 0"


async def test_a_call_that_may_have_run_is_seen_until_somebody_says_what_became_of_it(lab):
    """The alert on unknown outcomes: a gauge on whichever worker is left, and a counter that was 0 before the kill."""
    flags = [f"--metrics-address=127.0.0.1:{free_port()}", "--fleet-metrics-s", "0.2"]
    url = f"http://{flags[0].partition('=')[2]}/metrics"
    counter, gauge = ("countersign_unknown_outcomes_total", ""), ("countersign_unknown_outcomes_open", "")
    worker = lab.worker("lab.agents", None, *flags)
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    assert ours(await until(url, 200, gauge[0]), "free").items() >= {counter: 0, gauge: 0}.items()
    worker.restart()
    [question] = await questions(session, 1)
    await until_sample(url, gauge, 1)
    risen = ours(await until(url, 200), "free")[counter]
    assert risen >= 1  # twice if a query met the new worker before the session's step did
    await session.answer((question.id, "skip"))
    await session.result()
    await until_sample(url, gauge, 0)


async def until_sample(url: str, key: tuple[str, str], value: float) -> None:
    """Wait until a sample of the agent `free` has a value."""
    async with asyncio.timeout(60):
        while ours(await until(url, 200), "free").get(key) != value:
            await asyncio.sleep(0.1)


async def test_a_worker_that_is_told_to_stop_is_not_ready_and_lives(lab):
    """/readyz says 200 once the server has seen it poll, and 503 while a running tool finishes."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    worker = lab.worker("lab.agents", None, "--health-port", str(port), "--graceful-shutdown-s", "60")
    assert "ok" in await until(f"{url}/readyz", 200)
    session = await lab.start(worker, "free", f"effects={lab.effects_file} held:a")
    await until_effects(lab, "a-began")
    worker.process.send_signal(signal.SIGTERM)
    await until(f"{url}/readyz", 503, "stopping")
    assert fetched(f"{url}/livez")[0] == 200
    assert fetched(f"{url}/elsewhere")[0] == 404
    lab.let_go()
    await asyncio.to_thread(worker.process.wait, 60)
    assert "a-ended" in lab.effects()
    await session.terminate("test")


EARLY = """
import os, socket
from countersign import Agent, durable
from countersign.models import ScriptedModel

if not os.path.exists({found!r}):  # the sandbox loads it again, later
    with socket.socket() as probe:
        refused = probe.connect_ex(("127.0.0.1", {port}))
    with open({found!r}, "w") as file:
        file.write("nobody listens" if refused else "listens, and does not answer")

@durable("early")
def early() -> Agent:
    return Agent(model=ScriptedModel(["hello"]))
"""


async def test_nobody_listens_while_agents_are_imported(lab):
    """A slow import would block the event loop, and a worker that listens and does not answer looks dead."""
    port, found = free_port(), lab.folder / "found"
    lab.package("slow_to_import", agents=EARLY.format(found=str(found), port=port))
    lab.worker("slow_to_import.agents", None, "--health-port", str(port))
    assert found.read_text() == "nobody listens"
    assert fetched(f"http://127.0.0.1:{port}/livez")[0] == 200


async def test_a_worker_without_a_server_is_not_ready(monkeypatch):
    """The connection is asked about, not only whether the process thinks that it polls."""
    from temporalio.worker import Worker
    from tests.activities.calls import PassesOn

    monkeypatch.setattr(health_room, "CONNECTION_COUNTS_S", 0.0)
    health = Health()
    assert await health.not_ready() == "starting"
    async with DevServer() as server:
        client = await Client.connect(server.address)
        async with Worker(client, task_queue="health", workflows=[PassesOn]) as worker:
            health.serving(client, [worker])
            async with asyncio.timeout(60):
                while await health.not_ready() is not None:
                    await asyncio.sleep(0.05)
            await server.stop()
            assert "does not answer" in str(await health.not_ready())


@contextmanager
def collector(take: Callable[[str, bytes], None]) -> Iterator[str]:
    """An OTLP collector over HTTP that hands on what it is sent: path and body. Yields its address."""

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            take(self.path, body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


async def test_a_session_leaves_a_trace_at_the_collector(lab, monkeypatch):
    """`--traces` sends spans by OTLP, as the OTEL_* variables say: a tool's stands in the trace of its starter."""
    spans = {}

    def take(path: str, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                spans.update({span.name: span.trace_id for span in scope.spans})

    with collector(take) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        worker = lab.worker("lab.agents", None, "--traces")
        tracer = TracerProvider().get_tracer("test")
        temporal = await Client.connect(lab.address, interceptors=[TracingInterceptor(tracer)])
        with tracer.start_as_current_span("a person's request") as request:
            prompt = f"effects={lab.effects_file} effect:a"
            session = await AgentClient(temporal, task_queue=worker.queue).start("free", prompt)
        await session.result()
        async with asyncio.timeout(60):
            while not {"RunWorkflow:AgentSession", "RunWorkflow:AgentCycle", "RunActivity:effect"} <= set(spans):
                await asyncio.sleep(0.05)
    assert int.from_bytes(spans["RunActivity:effect"]) == request.get_span_context().trace_id


async def test_metrics_reach_a_collector(lab):
    """`--metrics-otlp-url` sends the engine's metrics and ours by OTLP."""
    sent: dict[str, float] = {}

    def take(path: str, body: bytes) -> None:
        assert path == "/v1/metrics"
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                points = [*metric.sum.data_points, *metric.gauge.data_points]
                sent[metric.name] = max((point.as_int or point.as_double for point in points), default=0)

    with collector(take) as url:
        worker = lab.worker("lab.agents", None, f"--metrics-otlp-url={url}/v1/metrics", "--fleet-metrics-s", "0.2")
        session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
        [question] = await questions(session, 1)
        await session.deny(question.id)
        await session.result()
        async with asyncio.timeout(60):
            while not sent.get("countersign_answers_total") or "temporal_workflow_completed" not in sent:
                await asyncio.sleep(0.05)
