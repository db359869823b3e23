"""Payloads that nobody can decode: a session refuses them by name, and no workflow task fails."""

import uuid
import zlib

import pytest
from temporalio.api.common.v1 import Header, Payload, Payloads, WorkflowExecution
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from tests.conftest import WorkerProcess
from tests.durable.test_intake import failed_tasks, plain, signal
from tests.durable.test_waiting import questions

from countersign.workflows.trace_headers import HEADER, _readable

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

REFERENCE = {"encoding": b"json/protobuf", "messageType": b"temporal.api.sdk.v1.ExternalStorageReference"}
MARK = "__temporal_external_storage_reference"
UNDECODABLE = {
    "unknown-encoding": Payload(metadata={"encoding": b"binary/unknown"}, data=b"\x00\x01"),
    "no-encoding": Payload(data=b"no encoding"),
    "broken-json": Payload(metadata={"encoding": b"json/plain"}, data=b"{not json"),
    "broken-protobuf": Payload(metadata={"encoding": b"binary/protobuf", "messageType": b"no.Such"}, data=b"\xff"),
    "encrypted-without-key-id": Payload(metadata={"encoding": b"binary/encrypted"}, data=b"?" * 40),
    "not-compressed": Payload(metadata={"encoding": b"binary/zlib"}, data=b"?" * 40),
    "unknown-driver": Payload(metadata=REFERENCE, data=b'{"driverName": "theirs", "claimData": {"key": "x"}}'),
    "broken-reference": Payload(metadata=REFERENCE, data=b"{"),
    "climbing-claim": Payload(
        metadata=REFERENCE, data=b'{"driverName": "countersign.file", "claimData": {"sha256": "../../etc/passwd"}}'
    ),
    "old-broken-reference": Payload(metadata={"encoding": b"json/external-storage-reference"}, data=b"7"),
    "marked-and-none": Payload(metadata={"encoding": b"json/plain", MARK: b"true"}, data=b"1"),
}

FORGED = {
    "unknown-key": Payload(metadata={"encoding": b"binary/encrypted", "encryption-key-id": b"nobody"}, data=b"?" * 40),
    "missing-blob": Payload(
        metadata=REFERENCE,
        data=b'{"driverName": "countersign.file", "claimData": {"sha256": "' + b"0" * 64 + b'"}}',
    ),
    "missing-store": Payload(
        metadata=REFERENCE, data=b'{"driverName": "aws.s3driver", "claimData": {"bucket": "b", "key": "k"}}'
    ),
}
"""These might be ours: a worker with other settings would read them."""

OBJECTS = b"[" + b'{"":{}},' * 1_000_000 + b"{}]"
BOMB = Payload(
    metadata={"encoding": b"binary/zlib"},
    data=zlib.compress(Payload(metadata={"encoding": b"json/plain"}, data=OBJECTS).SerializeToString()),
)
SENT = {**UNDECODABLE, "bomb": BOMB}


@pytest.fixture(scope="module")
def worker(temporal_server, tmp_path_factory):
    """A worker with a file store."""
    folder = tmp_path_factory.mktemp("undecodable")
    storage = f"file://{folder}/store"
    running = WorkerProcess(temporal_server, "lab.agents", folder, None, "--storage", storage).start()
    yield running
    running.kill()


async def test_a_start_that_can_not_be_decoded_is_refused(worker, client):
    """The session fails at once and says why; its task is not tried for ever."""
    for name, payload in SENT.items():
        handle = await client.start_workflow(
            "AgentSession", RawValue(payload), id=f"{name}-{uuid.uuid4().hex[:8]}", task_queue=worker.queue
        )
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        cause = failed.value.cause
        assert isinstance(cause, ApplicationError) and cause.type == "InvalidStart", name
        assert "can't be decoded" in cause.message, name
        assert await failed_tasks(client, handle.id) == 0, name


async def test_a_signal_that_can_not_be_decoded_is_recorded(lab, worker, client):
    """Each one leaves a line of the audit; the question is still answered."""
    session = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    every = [*SENT.values(), *FORGED.values()]
    for payload in every:
        await signal(client, session.id, "respond", [payload])
        await signal(client, session.id, "respond", [payload, payload])
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0
    refused = [line for line in await session.audit() if line.event == "refused"]
    assert len(refused) == 2 * len(every)


async def test_a_refusal_outlives_the_worker(lab, worker, client):
    """A new worker replays what the one before refused and accepted, and the session goes on."""
    own = lab.worker()
    session = await lab.start(own, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    for name, payload in FORGED.items():
        await signal(client, session.id, "respond", [payload])
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await client.get_workflow_handle(session.id).execute_update("answer", RawValue(payload))
        assert isinstance(refused.value.cause, ApplicationError) and refused.value.cause.type == "malformed", name
    own.restart()
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0
    lines = [line for line in await session.audit() if line.event == "refused"]
    assert len(lines) == len(FORGED) and all("lacked the key" in str(line.detail) for line in lines)


async def test_a_forged_trace_header_stops_nothing(lab, client, monkeypatch):
    """With traces on, the engine reads a header of every signal; one that is no trace is left out."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")  # nobody is there
    tracing = lab.worker("lab.agents", None, "--traces")
    session = await lab.start(tracing, "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await questions(session, 1)
    for header in (
        *UNDECODABLE.values(),
        *FORGED.values(),
        plain(7),
        plain({"traceparent": 7}),
        plain({"traceparent": [7]}),
    ):
        await client.workflow_service.signal_workflow_execution(
            SignalWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=session.id),
                signal_name="respond",
                input=Payloads(payloads=[plain({})]),
                header=Header(fields={"_tracer-data": header}),
            )
        )
    await session.answer((question.id, "y"))
    assert (await session.result()).stop_reason == "end_turn"
    assert await failed_tasks(client, session.id) == 0


@pytest.mark.parametrize("text", [TRACE, [TRACE], []])
def test_a_trace_header_that_propagators_read_is_left_in(text):
    """They take texts, and lists of texts, as some languages have them."""
    headers = {HEADER: plain({"traceparent": text})}
    assert _readable(headers) == headers


async def test_a_cycle_started_by_a_stranger_with_anything_fails(worker, client):
    """It fails as a workflow, not as a task that is tried for ever."""
    for payloads in ([UNDECODABLE["broken-json"]], [plain({}), UNDECODABLE["unknown-driver"]]):
        handle = await client.start_workflow(
            "AgentCycle", args=[RawValue(p) for p in payloads], id=f"s-{uuid.uuid4().hex[:8]}", task_queue=worker.queue
        )
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert await failed_tasks(client, handle.id) == 0


async def test_a_session_with_a_cycle_s_name_takes_no_bombs_either(worker, client):
    """What our workers send each other may be large; a stranger's start and signals under such an id may not."""
    session = f"s-{uuid.uuid4().hex[:8]}/cycle-1"
    handle = await client.start_workflow("AgentSession", RawValue(BOMB), id=session, task_queue=worker.queue)
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "are taken" in str(failed.value.cause)
    cycle = await client.start_workflow(
        "AgentCycle", args=[RawValue(BOMB)] * 2, id=f"{session}0", task_queue=worker.queue
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await cycle.result()
    assert "only as the child" in str(failed.value.cause)
