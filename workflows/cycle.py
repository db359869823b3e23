"""`AgentCycle`: runs agent-loop cycles, with all user code policed, and ends with an outcome.

The only workflow that runs hooks and handlers. It lives for seconds: whatever must wait for
people is handed to its parent, the session.
"""

from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, VersioningBehavior
from temporalio.exceptions import ApplicationError

from countersign.agent_core.agent import Agent
from countersign.agent_core.conversation import Conversation, unpacked
from countersign.agent_core.cycle import run_cycle
from countersign.agent_core.durable import durable_agents
from countersign.agent_core.effects import on_a_worker
from countersign.agent_core.errors import AgentDefinitionError
from countersign.agent_core.wire import (
    CYCLE_WORKFLOW,
    CycleInput,
    CycleOutcome,
    ErrorInfo,
    StoredSegment,
)
from countersign.workflows import host
from countersign.workflows.cycle_effects import DurableEffects
from countersign.workflows.details import cycle_line
from countersign.workflows.fitting import fitting
from countersign.workflows.guard import policed
from countersign.workflows.intake import decoded
from countersign.workflows.pace import Pace
from countersign.workflows.sandbox import BUILT_OUTSIDE, import_time

HANDOVER_CYCLES = 20
"""The most cycles that share one workflow."""

HANDOVER_BYTES = 2_000_000
"""The most history that a workflow may have when it starts one more cycle."""

HANDOVER_OUTCOME_BYTES = 300_000
"""The most that a workflow may have to hand on when it starts one more cycle, whose results must fit beside it."""


@workflow.defn(name=CYCLE_WORKFLOW, failure_exception_types=[Exception])
class AgentCycle:
    """One cycle, or a chain of fast ones that share a workflow.

    A fault of the code, nondeterminism included, fails this workflow instead of its task: the
    session sees it, keeps what was finished and goes on.
    """

    def __init__(self) -> None:
        self._effects: DurableEffects | None = None
        self._stop = False
        self._ended: list[str] = []
        self._pace = Pace()

    @workflow.signal(name="stop")
    def stop(self, _: RawValue) -> None:
        """Stop: after the tools that are running, and without the model's answer."""
        self._stop = True
        if self._effects is not None:
            self._effects.stop()

    @workflow.run
    async def run(self, given: dict[str, Any], *contents: Any) -> CycleOutcome:
        """Run cycles until the turn does not go on, or it is time to hand over.

        Args:
            given: A `CycleInput`.
            *contents: The conversation so far, in pieces; those in storage were read from there, and their
                references follow, as `conversation.packed` makes them.

        Raises:
            ApplicationError: If it is not the child of a session, or the input can't be read.
        """
        on_a_worker.set(True)  # for all that runs in this workflow
        parent, info = workflow.info().parent, workflow.info()
        if parent is None or not info.workflow_id.startswith(f"{parent.workflow_id}/cycle-"):
            raise ApplicationError(
                "AgentCycle runs only as the child of an AgentSession; start an AgentSession",
                type="NotASession",
                non_retryable=True,
            )
        given, contents = decoded(given), tuple(decoded(content) for content in contents)  # large ones come as they are
        total: CycleOutcome | None = None
        cycle = CycleInput.model_validate(given)
        if cycle.worker_deadline:
            cycle.default_deadline_s = host.default_deadline_s(info.task_queue)
        conversation = _conversation(cycle, contents)
        for number in range(1, HANDOVER_CYCLES + 1):
            outcome = await self._one(cycle, conversation)
            self._ended.append(cycle_line(cycle, outcome))
            self._show()
            total = outcome if total is None else _joined(total, outcome)
            if number == HANDOVER_CYCLES or not self._goes_on(cycle, outcome, conversation):
                break
            cycle = _following(cycle, outcome)
        assert total is not None  # the loop runs at least once
        if conversation.has_stored:
            kept, pieces = conversation.changed()
            total = total.model_copy(update={"messages": [], "conversation": None, "kept": kept, "pieces": pieces})
        elif conversation.rewritten:
            total = total.model_copy(update={"messages": [], "conversation": conversation.messages})
        return fitting(total)

    async def _one(self, given: CycleInput, conversation: Conversation) -> CycleOutcome:
        self._show(f"- cycle {given.cycle} runs")
        self._effects = DurableEffects(given, conversation, self._pace, self._stop)
        try:
            agent = _build(given.agent)
        except Exception as error:  # whatever a module or factory raises ends the turn, with its own words
            outcome = _failed(given, error)
        else:
            outcome = (await run_cycle(agent, given, conversation.messages, self._effects)).outcome
        if outcome.conversation is not None:
            conversation.messages = list(outcome.conversation)
        else:
            conversation.messages.extend(outcome.messages)
        return outcome

    def _show(self, *running: str) -> None:
        """What this workflow has done, and does, in the Temporal UI."""
        workflow.set_current_details("\n".join([*self._ended, *running]))

    def _goes_on(self, given: CycleInput, outcome: CycleOutcome, conversation: Conversation) -> bool:
        """True if the next cycle may share this workflow."""
        info = workflow.info()
        lasted_s = (workflow.now() - info.start_time).total_seconds()
        return (
            outcome.goes_on
            and not self._stop
            and self._pace.allows_another(given.handover_after_s, lasted_s)
            and info.get_current_history_size() < HANDOVER_BYTES
            and conversation.unsent_bytes() < HANDOVER_OUTCOME_BYTES
        )


@workflow.defn(name=CYCLE_WORKFLOW, failure_exception_types=[Exception], versioning_behavior=VersioningBehavior.PINNED)
class PinnedCycle(AgentCycle):
    """`AgentCycle` for a worker with versions: it ends on the build on which it began.

    A class of its own: on a worker without versions, the behaviour would wedge it.
    """

    @workflow.run
    async def run(self, given: dict[str, Any], *contents: Any) -> CycleOutcome:
        """See `AgentCycle.run`."""
        return await super().run(given, *contents)


def _conversation(given: CycleInput, contents: Sequence[Any]) -> Conversation:
    if given.pieces is None:  # from before anything was stored
        return Conversation(contents)
    references = [piece for piece in unpacked(contents[given.pieces :]) if isinstance(piece, StoredSegment)]
    return Conversation(contents[: given.pieces], references, given.unstored)


def _build(name: str) -> Agent:
    """A fresh agent from its factory, in this workflow's policed copy of its module.

    Raises:
        AgentDefinitionError: If this worker does not serve it, or it can't be built.
    """
    served = host.deployments(workflow.info().task_queue)
    deployment = served.get(name)
    if deployment is None:
        known = ", ".join(sorted(served)) or "none"
        raise AgentDefinitionError(
            f"no agent named {name!r} on this worker; it serves: {known}. Start a worker with --agents MODULE"
        )
    with policed(f"the module or factory of agent {name!r}", BUILT_OUTSIDE):
        with import_time():
            module = __import__(deployment.module, fromlist=["*"])
        agent = durable_agents(module)[name]()
    agent._for_a_worker = True
    for tool in agent.tool_registry:
        built = deployment.template.tool_registry.get(tool.tool_name)
        if built is not None:
            tool.adopt(built)
    if agent.output_tool is not None and deployment.template.output_tool is not None:
        agent.output_tool.adopt(deployment.template.output_tool)
    return agent


def _following(given: CycleInput, outcome: CycleOutcome) -> CycleInput:
    """The input of the cycle after one that ended with tool results."""
    return given.model_copy(
        update={
            "cycle": outcome.last_cycle + 1,
            "opens": "continue",
            "prompt": [],
            "pending": None,
            "response": None,
            "agent_state": outcome.agent_state,
            "handlers": outcome.handlers,
            "invocation_state": outcome.invocation_state,
            "progress": outcome.progress,
            "model_calls": outcome.model_calls,
            "fresh": False,
        }
    )


def _joined(first: CycleOutcome, second: CycleOutcome) -> CycleOutcome:
    """The outcome of two cycles in a row."""
    joined = second.model_copy()
    joined.audit, joined.gone = [*first.audit, *second.audit], first.gone + second.gone
    if second.conversation is None:
        joined.messages = [*first.messages, *second.messages]
        if first.conversation is not None:
            joined.conversation = [*first.conversation, *second.messages]
    return joined


def _failed(given: CycleInput, error: Exception) -> CycleOutcome:
    """A turn that can't even begin; the prompt stays in the conversation."""
    return CycleOutcome(
        stop_reason="failed",
        last_cycle=given.cycle,
        messages=[] if given.pending else given.prompt,
        pending=None,
        agent_state=given.agent_state,
        handlers=given.handlers,
        invocation_state=given.invocation_state,
        progress=given.progress,
        model_calls=given.model_calls,
        fresh=given.fresh,
        error=ErrorInfo(type=type(error).__name__, message=str(error)),
    )
