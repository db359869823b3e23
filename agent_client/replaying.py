"""Replays histories of sessions and cycles on the code that is here, and says what would break if it were deployed.

Nothing is sent to a session, and no tool, model or step runs: a replay takes their results from the history.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHistory
from temporalio.converter import DataConverter, DefaultFailureConverter
from temporalio.exceptions import TemporalError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from countersign.agent_client.builds import pinned_to
from countersign.agent_client.payloads import data_converter
from countersign.agent_client.replay_findings import (
    Finding,
    difference,
    failed,
    nondeterminism,
    session_findings,
)
from countersign.agent_client.replay_histories import kind_of, open_children, started_in
from countersign.agent_client.translation import described, translated
from countersign.agent_core.deployment import load_agents
from countersign.workflows import host
from countersign.workflows.intake import IntakeGuard
from countersign.workflows.replayed import REPLAYED_WORKFLOWS, Witness
from countersign.workflows.sandbox import policed_runner, roots_of

REPLAY_S = 60.0
"""A replay takes milliseconds; one that takes so long hangs."""

ATTEMPTS = 2
"""On a busy machine a replay may run into Temporal's deadlock detector (2 s) once."""


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
        given = data_converter(worker=True) if converter is None else converter
        # A replay sends nothing, so that its failures need not be hidden: their words are the finding.
        self._converter = replace(given, failure_converter_class=DefaultFailureConverter)
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
            findings.append(failed(_plain(failure), _types(failure)))
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
        try:
            return task.result().replay_failure
        except Exception as error:  # the replayer itself gave up: what it met is the finding
            return error


def _plain(failure: Exception) -> str:
    """Temporal's words, out of the structure that its core prints them in."""
    said = re.search(r'message: "((?:[^"\\]|\\.)+)"', str(failure))
    return said[1] if said else str(failure) or type(failure).__name__


def _types(failure: Exception) -> list[str]:
    """The types of a failure and its causes, as Temporal's core prints them."""
    return re.findall(r'r#type: "(\w+)"', str(failure))


async def with_cycles(temporal: Client, rehearsal: Rehearsal, session_id: str) -> AsyncIterator[Replayed]:
    """A session's latest run and its open cycles on this code.

    Raises:
        SessionNotFoundError: If there is no such session.
    """
    pinned = pinned_build(await described(temporal, session_id))
    try:
        history = await temporal.get_workflow_handle(session_id).fetch_history()
        yield _ends_elsewhere(session_id, "session", pinned) if pinned else await rehearsal.replay(history)
        for cycle_id in open_children(history):
            yield await _cycle(temporal, rehearsal, cycle_id)
    except TemporalError as error:
        raise await translated(error, temporal) from error


async def _cycle(temporal: Client, rehearsal: Rehearsal, cycle_id: str) -> Replayed:
    handle = temporal.get_workflow_handle(cycle_id)
    seen = await handle.describe()
    pinned = pinned_build(seen)
    if pinned:
        return _ends_elsewhere(cycle_id, "cycle", pinned)
    return await rehearsal.replay(await handle.fetch_history())


def _ends_elsewhere(workflow_id: str, kind: str, build: str) -> Replayed:
    what = f"pinned to build {build}, on which it ends; this code never runs it"
    return Replayed(workflow_id, kind, 0, findings=[Finding("pinned", "notice", what)])


def pinned_build(seen: WorkflowExecutionDescription) -> str:
    """The build that a workflow is pinned to, like "agents:2026-11-30"; "" if it is not."""
    build = pinned_to(seen.raw_description.workflow_execution_info.versioning_info)
    return f"{build.deployment}:{build.build_id}" if build else ""
