"""Replays histories of sessions and cycles on the code that is here, and says what would break if it were deployed.

Nothing is sent to a session, and no tool, model or step runs: a replay takes their results from the history.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType, VersioningBehavior
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.exceptions import TemporalError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from countersign.agent_client.errors import ClientError
from countersign.agent_client.payloads import data_converter
from countersign.agent_client.replay_findings import Finding, difference, nondeterminism, session_findings
from countersign.agent_client.translation import described, translated
from countersign.agent_core.deployment import load_agents
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.wire import CYCLE_WORKFLOW, SESSION_WORKFLOW, STEP_ACTIVITY
from countersign.workflows import host
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.replayed import REPLAYED_WORKFLOWS, Witness, activity_label, child_label
from countersign.workflows.sandbox import policed_runner, roots_of

REPLAY_S = 60.0
"""A replay takes milliseconds; one that takes so long hangs."""

ATTEMPTS = 2
"""On a busy machine a replay may run into Temporal's deadlock detector (2 s) once."""

_ENDS = frozenset(
    EventType.Value(f"EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_{how}")
    for how in ("COMPLETED", "FAILED", "CANCELED", "TIMED_OUT", "TERMINATED")
)


@dataclass(frozen=True)
class Replayed:
    """One history on this code.

    Attributes:
        workflow_id: Of the session or cycle.
        kind: "session" or "cycle".
        events: Of its history; 0 if it was not replayed.
        agent: Of a session.
        findings: What would happen; empty if all is well.
    """

    workflow_id: str
    kind: str
    events: int
    agent: str = ""
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def breaks(self) -> bool:
        """True if something would break."""
        return any(finding.level == "breaks" for finding in self.findings)


class Rehearsal:
    """The code under test: agent modules of this folder, and this version of Countersign.

    One at a time in a process: agents are compiled for the sandbox once, as a worker does it.

    Args:
        modules: Agent modules, as for a worker.
        converter: As the workers', with their keys and storage; from the settings of `agent_client.payloads` if None.
        namespace: That the workflows believe they are in.

    Raises:
        PayloadSettingsError: If a key or a store can't be used.
        AgentDefinitionError: If one can't be imported, built or policed: a worker would not start.
    """

    def __init__(
        self, modules: Sequence[str], converter: DataConverter | None = None, namespace: str = "default"
    ) -> None:
        self._roots = frozenset(roots_of(modules))
        self.agents = load_agents(modules)
        self._runner = policed_runner(modules)
        self._converter = data_converter(worker=True) if converter is None else converter
        self._namespace = namespace
        # Temporal's core logs each nondeterminism to standard output, which belongs to the report.
        self._runtime = Runtime(telemetry=TelemetryConfig(logging=None, metrics=None))
        host.install(None, self.agents)  # Temporal gives a replay a queue name of its own

    async def replay(self, history: WorkflowHistory) -> Replayed:
        """Replay one history and judge what it came to."""
        kind = kind_of(history)
        for _ in range(ATTEMPTS):
            witness = Witness(self._roots)
            failure = await self._failure(history, witness)
            if failure is None or "TMPRL1101" not in str(failure):  # of the deadlock detector
                break
        findings: list[Finding] = []
        if isinstance(failure, NondeterminismError):
            where = difference(await started_in(history, self._converter), witness.started, witness.ended)
            findings.append(nondeterminism(kind == "cycle", history.workflow_id, _plain(failure), where))
        elif failure is not None:
            advice = "the same would happen on a worker: its task fails again and again until the code is corrected"
            findings.append(Finding("replay-failed", "breaks", _plain(failure), advice))
        state = witness.state
        if state is not None and state.status != "closed" and not findings:
            findings += session_findings(state, self.agents)
        return Replayed(history.workflow_id, kind, len(history.events), state.agent if state else "", findings)

    async def _failure(self, history: WorkflowHistory, witness: Witness) -> Exception | None:
        replayer = Replayer(
            workflows=REPLAYED_WORKFLOWS,
            workflow_runner=self._runner,
            interceptors=[IntakeGuard(), witness],
            data_converter=self._converter,
            namespace=self._namespace,
            runtime=self._runtime,
        )
        task = asyncio.ensure_future(replayer.replay_workflow(history, raise_on_replay_failure=False))
        # Not asyncio.timeout: the replayer waits for its worker even when it is cancelled.
        done, _ = await asyncio.wait({task}, timeout=REPLAY_S)
        if not done:
            task.cancel()
            return TimeoutError(f"the replay did not end within {REPLAY_S:g} s")
        return task.result().replay_failure


def _plain(failure: Exception) -> str:
    """Temporal's words, out of the structure that its core prints them in."""
    said = re.search(r'message: "((?:[^"\\]|\\.)+)"', str(failure))
    return said[1] if said else str(failure) or type(failure).__name__


def kind_of(history: WorkflowHistory) -> str:
    """Whether it is the history of a "session" or of a "cycle".

    Raises:
        ClientError: If it is neither.
    """
    first = history.events[0].workflow_execution_started_event_attributes if history.events else None
    name = first.workflow_type.name if first else ""
    kinds = {SESSION_WORKFLOW: "session", CYCLE_WORKFLOW: "cycle"}
    if name not in kinds:
        raise ClientError(
            f"the history of {history.workflow_id!r} is of workflow type {name!r}; only {SESSION_WORKFLOW} and "
            f"{CYCLE_WORKFLOW} can be replayed here"
        )
    return kinds[name]


async def started_in(history: WorkflowHistory, converter: DataConverter) -> list[str]:
    """The activities and children that a history has, in order, in words."""
    found = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            given = event.activity_task_scheduled_event_attributes
            kind = given.activity_type.name
            args = await converter.decode(given.input.payloads[:1]) if kind == STEP_ACTIVITY else []
            found.append(activity_label(kind, args))
        elif event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            found.append(child_label(child.workflow_id))
    return found


def open_children(history: WorkflowHistory) -> list[str]:
    """Workflow ids of a session's cycles that had not ended."""
    found: dict[int, str] = {}
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
            child = event.start_child_workflow_execution_initiated_event_attributes
            found[event.event_id] = child.workflow_id
        elif event.event_type in _ENDS:
            found.pop(getattr(event, event.WhichOneof("attributes") or "").initiated_event_id, None)
        elif event.event_type == EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
            found.pop(event.start_child_workflow_execution_failed_event_attributes.initiated_event_id, None)
    return list(found.values())


def read_history(file: Path) -> WorkflowHistory:
    """A history as `temporal workflow show --output json`, the Temporal UI or `make histories` wrote it.

    Raises:
        ClientError: If it is none.
    """
    try:
        given: JsonObject = json.loads(file.read_text())
        events = WorkflowHistory.from_json("unknown", given).events
    except Exception as error:  # whatever protobuf makes of JSON that is none of its own
        raise ClientError(
            f"{file} can't be read as a history ({type(error).__name__}: {error}); write one with: "
            "temporal workflow show --workflow-id ID --output json"
        ) from error
    first = events[0].workflow_execution_started_event_attributes if events else None
    history = WorkflowHistory((first and first.workflow_id) or file.stem, events)
    kind_of(history)
    return history


async def with_cycles(temporal: Client, rehearsal: Rehearsal, session_id: str) -> AsyncIterator[Replayed]:
    """A session's latest run and its open cycles on this code.

    Raises:
        SessionNotFoundError: If there is no such session.
    """
    await described(temporal, session_id)
    try:
        history = await temporal.get_workflow_handle(session_id).fetch_history()
        yield await rehearsal.replay(history)
        for cycle_id in open_children(history):
            yield await _cycle(temporal, rehearsal, cycle_id)
    except TemporalError as error:
        raise await translated(error, temporal) from error


async def _cycle(temporal: Client, rehearsal: Rehearsal, cycle_id: str) -> Replayed:
    handle = temporal.get_workflow_handle(cycle_id)
    seen = await handle.describe()
    pinned = pinned_build(seen)
    if pinned:
        what = f"pinned to build {pinned}, on which it ends; this code never runs it"
        return Replayed(cycle_id, "cycle", 0, findings=[Finding("pinned", "notice", what)])
    return await rehearsal.replay(await handle.fetch_history())


def pinned_build(seen: WorkflowExecutionDescription) -> str:
    """The build that a workflow is pinned to, like "agents:2026-11-30"; "" if it is not."""
    info: Any = seen.raw_description.workflow_execution_info.versioning_info
    override = info.versioning_override
    if override.HasField("pinned"):
        version = override.pinned.version
    elif override.auto_upgrade or info.behavior != VersioningBehavior.VERSIONING_BEHAVIOR_PINNED:
        return ""
    else:
        version = info.deployment_version
    return f"{version.deployment_name}:{version.build_id}"
