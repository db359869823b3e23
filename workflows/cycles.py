"""Runs a session's cycles as child workflows, and picks up what a failed one has left."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ChildWorkflowError, FailureError, WorkflowAlreadyStartedError

from countersign.agent_core.conversation import packed
from countersign.agent_core.errors import PayloadTooLargeError
from countersign.agent_core.json_values import json_size
from countersign.agent_core.session import Session
from countersign.agent_core.wire import (
    CYCLE_WORKFLOW,
    MAX_ARGUMENTS_BYTES,
    MAX_VALUE_BYTES,
    READ_CYCLE_ACTIVITY,
    STOP_SIGNAL,
    CycleInput,
    CycleOutcome,
    ErrorInfo,
    Recovery,
    StoredSegment,
    cycle_id,
)
from countersign.workflows.details import CYCLE_DETAILS, cycle_summary
from countersign.workflows.results import UnreadableResultError, read
from countersign.workflows.stored import payload_of

READ_RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30))
READ_PATIENCE = timedelta(hours=1)
"""How long a failed cycle's history is tried to be read: the store of its values may be away for a while."""

RESUME_PATCH = "a-hook-goes-on-in-its-turn"
"""Since 2026-11-30. Before it, a hook that went on by `AfterInvocationEvent.resume` began a turn, and an `invoke`
returned before it."""

LATE_STOP_PATCH = "a-stop-may-come-too-late"
"""Since 2026-11-30. Before it, a child that had ended when it was told to stop counted as failed."""

ORPHAN_PATCH = "a-reset-ends-the-old-cycle"
"""Since 2026-11-30. Before it, a cycle that a reset had cut off went on, and its tools were told nothing."""


class Cycles:
    """The cycles of one session, one at a time.

    Args:
        session: Gets their outcomes.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._child: workflow.ChildWorkflowHandle[Any, RawValue] | None = None

    @property
    def running(self) -> bool:
        """True while one runs."""
        return self._child is not None

    async def stop(self) -> None:
        """Have the one that runs stop after its tools."""
        if self._child is not None:
            with contextlib.suppress(FailureError):  # it has ended meanwhile
                await self._child.signal(STOP_SIGNAL, {})

    async def run(self, given: CycleInput) -> None:
        """Run a cycle, and hand its outcome to the session.

        Raises:
            asyncio.CancelledError: If the session was cancelled meanwhile; the session has the outcome all the same.
        """
        try:
            arguments = self._arguments(given)
        except PayloadTooLargeError as error:
            self._session.fail_turn(ErrorInfo(type=type(error).__name__, message=str(error)), workflow.now())
            return
        child_id = cycle_id(given.session_id, given.cycle)
        try:
            self._child = await workflow.start_child_workflow(
                CYCLE_WORKFLOW,
                args=arguments,
                id=child_id,
                result_type=RawValue,
                execution_timeout=timedelta(seconds=self._session.state.options.cycle_overrun_s),
                static_summary=cycle_summary(given),
                static_details=CYCLE_DETAILS,
            )
            if self._session.state.stopping:  # it came before the child could be told
                await self._tell(self._child)
            outcome = read(await self._child, CycleOutcome, "its outcome")
        except (ChildWorkflowError, FailureError, UnreadableResultError) as error:
            if workflow.cancellation_reason() is not None:  # what ended the child was the session's own cancellation
                self._session.state.stopping = True
            elif isinstance(error, WorkflowAlreadyStartedError) and workflow.patched(ORPHAN_PATCH):
                await _end_orphan(child_id)
            await self._recover(given, child_id, _reason(error))
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError from error
        except asyncio.CancelledError:
            self._session.state.stopping = True
            await self._recover(given, child_id, "the session's workflow was cancelled")
            raise
        else:
            once = outcome.resume is not None and not workflow.patched(RESUME_PATCH)
            self._session.finish_cycle(outcome, workflow.now(), resume_is_a_turn=once)
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError
        finally:
            self._child = None

    async def _tell(self, child: workflow.ChildWorkflowHandle[Any, RawValue]) -> None:
        """Tell a child to stop; that it has ended meanwhile is no failure of it."""
        try:
            await child.signal(STOP_SIGNAL, {})
        except FailureError:
            if not workflow.patched(LATE_STOP_PATCH):
                raise

    def _arguments(self, given: CycleInput) -> list[Any]:
        """A cycle's arguments: its input, the conversation's pieces, and the references of the stored ones.

        Raises:
            PayloadTooLargeError: If Temporal would not take them.
        """
        pieces = self._session.state.pieces()
        stored = [piece for piece in pieces if isinstance(piece, StoredSegment)]
        given.pieces = len(pieces)
        given.unstored = [place for place, piece in enumerate(pieces) if not isinstance(piece, StoredSegment)]
        contents = [payload_of(piece) if isinstance(piece, StoredSegment) else piece for piece in pieces]
        arguments = [given.model_dump(mode="json"), *contents, *packed(stored)]
        sizes = [_size(argument) for argument in arguments]
        if sum(sizes) > MAX_ARGUMENTS_BYTES or max(sizes) > MAX_VALUE_BYTES:
            whole = "the session (conversation, questions and state)"
            raise PayloadTooLargeError(whole, sum(sizes), MAX_ARGUMENTS_BYTES)
        return arguments

    async def _recover(self, given: CycleInput, child_id: str, reason: str) -> None:
        """Read what a failed cycle had finished, and go on from there."""
        if self._child is None:
            # It never started. Whoever has its id may be the cycle of an earlier session: not ours to read.
            # If the session was cancelled while it waited for the start, nobody has told it how that went.
            lost = workflow.cancellation_reason() is not None
            self._session.recover(Recovery(reason=reason, lost=lost), given, workflow.now())
            return
        try:
            raw = await workflow.execute_activity(
                READ_CYCLE_ACTIVITY,
                args=[child_id, self._child.first_execution_run_id, reason],
                result_type=RawValue,
                start_to_close_timeout=timedelta(seconds=30),
                schedule_to_close_timeout=READ_PATIENCE,
                retry_policy=READ_RETRY,
                summary=f"what cycle {given.cycle} had finished",
            )
            recovery = read(raw, Recovery, "what was found there")
        except (ActivityError, UnreadableResultError) as error:
            cause = error.__cause__ or error
            recovery = Recovery(reason=f"{reason}, and its history can't be read ({cause})", lost=True)
        self._session.recover(recovery, given, workflow.now())


async def _end_orphan(child_id: str) -> None:
    """Cancel the cycle that has another one's id, and with it its tools: nobody waits for its outcome any more.

    It is of the run that was reset, or of an earlier session. Whether this run comes from a reset does not count
    here: `workflow.info()` says that otherwise in a replay of a downloaded history.
    """
    # It may have ended meanwhile; and that this session is cancelled, too, is looked at after the recovery.
    with contextlib.suppress(FailureError, asyncio.CancelledError):
        await workflow.get_external_workflow_handle(child_id).cancel()


def _size(content: Any) -> int:
    return content.payload.ByteSize() if isinstance(content, RawValue) else json_size(content)


def _reason(error: BaseException) -> str:
    """Why a child failed, in one line: the innermost cause says most."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"[:500]
