"""Our workflows as a replay runs them: what they come to is seen from outside, and nondeterminism is reported.

A worker never needs this; `countersign replay` and the replay of recorded histories do.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from temporalio import workflow
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from countersign.agent_core.session import SessionState
from countersign.agent_core.wire import CYCLE_WORKFLOW, STEP_ACTIVITY, CycleOutcome, StepCall
from countersign.workflows.cycle import AgentCycle
from countersign.workflows.session import AgentSession


class _Faults(type):
    """Makes `_AnyFault` stand for every exception but nondeterminism."""

    def __instancecheck__(cls, error: object) -> bool:
        return isinstance(error, Exception) and not isinstance(error, workflow.NondeterminismError)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, Exception) and not issubclass(kind, workflow.NondeterminismError)


class _AnyFault(Exception, metaclass=_Faults):
    """What fails a cycle's workflow in a replay."""


@workflow.defn(name=CYCLE_WORKFLOW, failure_exception_types=[_AnyFault])
class ReplayedCycle(AgentCycle):
    """A cycle that does not fail on nondeterminism: Temporal's replayer would wait for its end for ever."""

    @workflow.run
    async def run(self, given: dict[str, Any], *contents: Any) -> CycleOutcome:
        """See `AgentCycle.run`."""
        return await super().run(given, *contents)


REPLAYED_WORKFLOWS: tuple[type, ...] = (AgentSession, ReplayedCycle)
"""The classes for a replayer."""


@dataclass(frozen=True)
class Started:
    """An activity or a cycle that the code started.

    Attributes:
        label: What, in words: see `activity_label`.
        place: The line of policy code that led to it, like "ask in my_agents.py, line 12"; "" if none did.
    """

    label: str
    place: str = ""


@dataclass
class Witness(Interceptor):
    """Interceptor for the replay of one history: keeps what the code did.

    Args:
        roots: Root packages of the policy code.

    Attributes:
        state: The session's state at the end of the replay; None for a cycle.
        started: What the code started, in order.
        ended: How the code ended the workflow, in words; "" if it did not.
    """

    roots: frozenset[str] = frozenset()
    state: SessionState | None = None
    started: list[Started] = field(default_factory=list)
    ended: str = ""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        """See temporalio."""
        witness = self

        class Bound(_Inbound):
            def __init__(self, following: WorkflowInboundInterceptor) -> None:
                super().__init__(following)
                self.witness = witness

        return Bound


class _Inbound(WorkflowInboundInterceptor):
    witness: Witness

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound, self.witness))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        found = workflow.instance()
        if isinstance(found, AgentSession):
            self.witness.state = found._session.state
        try:
            result = await super().execute_workflow(input)
        except Exception as error:
            self.witness.ended = f"{type(error).__name__}: {error}"
            raise
        if isinstance(result, CycleOutcome):
            error_text = f" ({result.error.type}: {result.error.message})" if result.error else ""
            self.witness.ended = f"{result.stop_reason}{error_text}"
        return result


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, following: WorkflowOutboundInterceptor, witness: Witness) -> None:
        super().__init__(following)
        self._witness = witness

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        self._note(activity_label(input.activity, input.args))
        return super().start_activity(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
        self._note(child_label(input.id))
        return await super().start_child_workflow(input)

    def _note(self, label: str) -> None:
        self._witness.started.append(Started(label, _place(self._witness.roots)))


def activity_label(kind: str, args: Iterable[Any]) -> str:
    """An activity in words: a step by its function's name, everything else by its type.

    Args:
        kind: The activity's type.
        args: Its arguments, as the code gives them or as a history holds them.
    """
    if kind != STEP_ACTIVITY:
        return kind
    call = next(iter(args), None)
    name = call.step if isinstance(call, StepCall) else call.get("step") if isinstance(call, dict) else None
    return f"step {name}"


def child_label(workflow_id: str) -> str:
    """A child workflow in words."""
    return f"child {workflow_id}"


def _place(roots: frozenset[str]) -> str:
    """The innermost line of policy code that runs at this moment."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in roots:
            file = frame.f_code.co_filename.rpartition("/")[2]
            return f"{frame.f_code.co_qualname} in {file}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""
