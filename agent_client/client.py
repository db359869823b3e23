"""`AgentClient`: starts sessions, finds them again, and lists what waits for a person."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Self

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.converter import DataConverter
from temporalio.exceptions import TemporalError, WorkflowAlreadyStartedError

from countersign.agent_client.connection import connect_temporal, usual_task_queue
from countersign.agent_client.errors import SessionExistsError
from countersign.agent_client.fleet import FleetView, watched
from countersign.agent_client.listing import SessionSummary, listed_sessions
from countersign.agent_client.queues import queue_of
from countersign.agent_client.sending import DEFAULT_PATIENCE, uncancelled
from countersign.agent_client.session import SessionHandle
from countersign.agent_client.starting import (
    MEMO_AGENT,
    Lifetime,
    Resume,
    check_session_id,
    new_session_id,
    session_options,
    start_argument,
    static_details,
)
from countersign.agent_client.translation import translated
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.limits import Limits
from countersign.agent_core.markdown import plain
from countersign.agent_core.wire import SESSION_WORKFLOW, PromptContent


class AgentClient:
    """The door to sessions for client code.

    Args:
        temporal: A connected Temporal client; its data converter must be the workers' own.
        task_queue: Where sessions are started unless `start` says otherwise; `{agent}` in it stands for the
            agent's name, as in the worker's setting. COUNTERSIGN_TASK_QUEUE or "countersign" if None.
        patience: How long an answer or prompt is sent again while nothing confirms it.
    """

    def __init__(
        self, temporal: Client, *, task_queue: str | None = None, patience: timedelta = DEFAULT_PATIENCE
    ) -> None:
        self.temporal = temporal
        self.task_queue = task_queue or usual_task_queue()
        self._patience = patience

    @classmethod
    async def connect(
        cls,
        address: str | None = None,
        namespace: str | None = None,
        profile: str | None = None,
        task_queue: str | None = None,
        *,
        patience: timedelta = DEFAULT_PATIENCE,
        data_converter: DataConverter | None = None,
    ) -> Self:
        """Connect with what is given, else with TEMPORAL_* variables, else with Temporal's settings file.

        Args:
            address: "host:port" of the Temporal server; localhost:7233 if nothing names one.
            namespace: Temporal namespace.
            profile: Profile of Temporal's settings file, which may bring TLS and an API key.
            task_queue: Where sessions are started unless `start` says otherwise; may hold `{agent}`.
                COUNTERSIGN_TASK_QUEUE or "countersign" if None.
            patience: How long an answer or prompt is sent again while nothing confirms it.
            data_converter: How values travel; `countersign.payloads.data_converter()` if None.

        Raises:
            ConnectionFailedError: If the server can't be reached.
            AccessDeniedError: If it refuses the credentials.
        """
        temporal = await connect_temporal(address, namespace, profile, data_converter=data_converter)
        return cls(temporal, task_queue=task_queue, patience=patience)

    async def start(
        self,
        agent: str,
        prompt: PromptContent,
        *,
        session_id: str | None = None,
        lifetime: Lifetime = "turn",
        limits: Limits | None = None,
        invocation_state: JsonObject | None = None,
        resume: Resume = "each",
        handover_after: timedelta | None = None,
        idle_timeout: timedelta | None = None,
        deadline: timedelta | None = None,
        approval_ttl: timedelta | None = None,
        cycle_overrun: timedelta | None = None,
        task_queue: str | None = None,
    ) -> SessionHandle:
        """Start a session.

        Args:
            agent: Name that a worker serves.
            prompt: Text or content blocks.
            session_id: An id that no session has or had; a readable fresh one if None.
            lifetime: "turn" ends with the turn; "open" takes further prompts until it is closed or idle.
            limits: Caps on one invocation: `{"turns", "total_tokens", "output_tokens"}`, each optional.
            invocation_state: JSON that hooks and tools get to see.
            resume: "each" goes on with every answer; "all" waits for the whole batch.
            handover_after: Cycles share a workflow until its models and tools have worked so long; 2 s if None, zero
                for one each.
            idle_timeout: An open session ends after so long without a prompt; 30 days if None.
            deadline: How long each question waits; if None as long as the worker says, 30 days by default.
            approval_ttl: An approval lapses if its call has not started after so long; 24 hours if None.
            cycle_overrun: A cycle counts as stuck after so long; 24 hours if None.
            task_queue: Of the workers that serve the agent, if not this client's; may hold `{agent}`.

        Raises:
            SessionExistsError: If a session has or had the id, as long as the namespace remembers it (its retention).
            PayloadTooLargeError: If prompt and options are too large to send.
            ValueError, TypeError: For what can't be sent as it is.
        """
        session_id = session_id if session_id is not None else new_session_id(agent)
        check_session_id(session_id)
        options = session_options(
            lifetime=lifetime,
            resume=resume,
            limits=limits,
            invocation_state=invocation_state,
            handover_after=handover_after,
            idle_timeout=idle_timeout,
            deadline=deadline,
            approval_ttl=approval_ttl,
            cycle_overrun=cycle_overrun,
        )
        queue = queue_of(task_queue or self.task_queue, agent)
        await self._start(session_id, start_argument(agent, prompt, options), queue)
        return self.session(session_id)

    async def _start(self, session_id: str, argument: JsonObject, task_queue: str) -> None:
        try:
            await uncancelled(
                lambda: self.temporal.start_workflow(
                    SESSION_WORKFLOW,
                    argument,
                    id=session_id,
                    task_queue=task_queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    # Whoever may list workflows reads these, unless they are encrypted: nothing of the prompt.
                    memo={MEMO_AGENT: argument["agent"]},
                    static_summary=plain(str(argument["agent"])),
                    static_details=static_details(session_id, self.temporal.namespace),
                )
            )
        except WorkflowAlreadyStartedError as error:
            raise SessionExistsError(session_id) from error
        except TemporalError as error:
            raise await translated(error, self.temporal) from error

    def session(self, session_id: str) -> SessionHandle:
        """The session of that id; whether there is one shows with the first request."""
        return SessionHandle(self.temporal, session_id, patience=self._patience)

    def waiting(self, agent: str | None = None) -> AsyncIterator[SessionSummary]:
        """Sessions with open questions, the newest first.

        Args:
            agent: Only sessions of that agent.
        """
        return self.sessions(agent, asking=True)

    def sessions(
        self,
        agent: str | None = None,
        *,
        statuses: Sequence[str] = (),
        asking: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[SessionSummary]:
        """Sessions, those that have not ended first, the newest first; then the ended ones, the last ended first.

        Reads Temporal's list of workflows, their memos and search attributes: no worker is needed, and
        what happened a moment ago may be missing for about a second.

        Args:
            agent: Only sessions of that agent.
            statuses: Only those with one of these: see `SessionSummary.status`; empty for all.
            asking: Only those with open questions, whatever their status.
            limit: At most so many; None for all that the namespace remembers.

        Raises:
            ValueError: For a status that no session has.
            ConnectionFailedError, AccessDeniedError: If the server can't be asked.
        """
        return listed_sessions(self.temporal, agent, statuses, asking=asking, limit=limit)

    def watch(self, agent: str | None = None, *, every: timedelta = timedelta(seconds=1)) -> AsyncIterator[FleetView]:
        """Look at the sessions that have not ended again and again, for ever; as `sessions` does, at most 500.

        Args:
            agent: Only sessions of that agent.
            every: Pause between two looks; up to four times that while nothing changes.
        """
        return watched(self.temporal, agent, every)
