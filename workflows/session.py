"""`AgentSession`: the entity that people talk to. It waits, for prompts, answers and deadlines.

It runs no user code, so nothing that waits can break when policy code changes. All decisions are
in `agent_core.session`; this file turns them into children, activities, timers and views.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from countersign.agent_core.conversation import packed
from countersign.agent_core.json_values import JsonObject
from countersign.agent_core.session import Session, SessionState, views
from countersign.agent_core.wire import (
    ANSWER_UPDATE,
    AUDIT_QUERY,
    CLOSE_UPDATE,
    INTERRUPTS_QUERY,
    INVOKE_UPDATE,
    MAX_ARGUMENTS_BYTES,
    PROMPT_SIGNAL,
    RESPOND_SIGNAL,
    SESSION_WORKFLOW,
    STATUS_QUERY,
    STOP_SIGNAL,
    TRANSCRIPT_QUERY,
    ErrorInfo,
    SessionResult,
)
from countersign.workflows.cycles import Cycles
from countersign.workflows.details import wait_summary
from countersign.workflows.inbox import Inbox
from countersign.workflows.intake import decoded
from countersign.workflows.publishing import Publisher
from countersign.workflows.session_opening import opening
from countersign.workflows.updates import Updates

LEARN_PATCH = "search-attributes-beside-the-work"
"""Since 2026-11-30. Before it, a session waited for a local activity that told which search attributes there are."""

SHED_PATCH = "what-stands-twice-is-shed"
"""Since 2026-11-30. Before it, a session of a large state, or of many answers, stayed in its run for good."""

BOUND_PATCH = "no-run-waits-for-a-busy-worker"
"""Since 2026-11-30. Before it, a run that could end waited until it knew which search attributes there are."""

LEARNING_ENDS = timedelta(seconds=10)
"""How long a run that could end waits for what it asks about search attributes."""

HISTORY_EVENTS = 10_000
"""Events after which a session continues as new even if the server has not suggested it."""


@workflow.defn(name=SESSION_WORKFLOW, sandboxed=False)
class AgentSession:
    """One session; its workflow id is the session's id."""

    @workflow.init
    def __init__(self, start: RawValue | None = None, *rest: Any) -> None:
        self._fault: ApplicationError | None = None
        try:
            self._session = opening(start, rest, workflow.info(), workflow.now())
        except ApplicationError as error:
            self._fault = error
            self._session = Session(SessionState(session_id=workflow.info().workflow_id, agent="unknown"))
        self._woken = False
        self._learning: asyncio.Task[None] | None = None
        self._inbox = Inbox(self._session, self._wake)
        self._cycles = Cycles(self._session)
        self._publisher = Publisher(self._session)
        self._updates = Updates(self._session, self._wake, self._publisher.metering.refused)

    @workflow.run
    async def run(self, start: RawValue | None = None, *rest: Any) -> SessionResult:
        """Live until the turn is over (lifetime "turn") or the session is closed (lifetime "open").

        Raises:
            ApplicationError: If the start can't be read, or the only turn failed.
        """
        if self._fault is not None:
            raise self._fault
        try:
            if workflow.patched(LEARN_PATCH):
                self._learning = asyncio.create_task(self._publisher.learn())
            else:
                await self._publisher.learn_first()
            await self._live()
        except asyncio.CancelledError:
            self._session.stop(workflow.now(), "the workflow was cancelled")
            self._session.close(workflow.now())
            await self._leave()
            raise
        await self._leave()
        return self._ended()

    async def _leave(self) -> None:
        """Show the session as closed, and let those return who wait for it."""
        await self._learned()
        self._session.state.status = "closed"
        self._publisher.publish()
        self._wake()
        await workflow.wait_condition(workflow.all_handlers_finished)

    async def _learned(self) -> None:
        """Wait for the search attributes: the server fails a task that ends a run while an activity reports.

        One that no worker takes does not report either, and is not waited for.
        """
        if self._learning is None or self._learning.done():
            return
        bounded = workflow.patched(BOUND_PATCH)
        try:
            await workflow.wait_condition(self._learning.done, timeout=LEARNING_ENDS if bounded else None)
        except TimeoutError:
            self._learning.cancel()
            await workflow.wait_condition(self._learning.done)  # nothing may be shown behind a run's last command

    async def _live(self) -> None:
        progressed = False
        while True:
            # Between two cycles, too: a turn of many cycles must not outgrow its history. Never before this run
            # has done something, so that runs can't follow each other without end.
            if progressed and not self._session.done and self._should_continue_as_new():
                await self._continue_as_new()
            progressed = True
            self._session.expire(workflow.now())
            given = self._session.next_cycle(workflow.now())
            self._publisher.publish()
            if given is not None:
                try:
                    await self._cycles.run(given)
                finally:
                    self._inbox.look_again()
            elif self._session.done:
                return
            else:
                await self._wait()

    def _ended(self) -> SessionResult:
        result = self._session.result()
        if result.error is not None and self._session.state.options.lifetime == "turn":
            raise ApplicationError(
                _blamed(result.error),
                result.model_dump(mode="json"),
                type=result.error.type,
                non_retryable=True,
            )
        return result

    async def _wait(self) -> None:
        """Sleep until something comes in, a question expires, or an idle session's time is over."""
        now, deadline, state = workflow.now(), self._session.next_deadline(), self._session.state
        idle = state.status == "idle"
        if idle:  # since it went idle, whatever was refused meanwhile and however often it was continued as new
            since = datetime.fromisoformat(state.since) if state.since else now
            deadline = since + timedelta(seconds=state.options.idle_timeout_s)
        self._woken = False
        try:
            timeout = max(deadline - now, timedelta(0)) if deadline else None
            shown = wait_summary(len(self._session.open_questions()))
            await workflow.wait_condition(lambda: self._woken, timeout=timeout, timeout_summary=shown)
        except TimeoutError:
            if idle and not self._woken:
                self._session.close(workflow.now())

    def _wake(self) -> None:
        self._woken = True
        self._publisher.metering.measure()
        if self._cycles.running:  # nothing is published until the cycle ends
            self._publisher.describe()

    # Continue-as-new

    def _should_continue_as_new(self) -> bool:
        info, options = workflow.info(), self._session.state.options
        limit = options.continue_after_events or HISTORY_EVENTS
        due = info.is_continue_as_new_suggested() or info.get_current_history_length() >= limit
        # What is too large to be handed on stays where it is: the attempt would fail for ever.
        state = self._session.state
        return due and (
            state.shed(MAX_ARGUMENTS_BYTES) or (workflow.patched(SHED_PATCH) and state.shed_more(MAX_ARGUMENTS_BYTES))
        )

    async def _continue_as_new(self) -> None:
        """Start a new run with everything that this one holds; waiting invokes are told to ask there."""
        await self._learned()
        if not self._should_continue_as_new():  # with what came meanwhile it may be too large to be handed on
            return
        self._updates.move()
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._publisher.metering.measure()
        state = self._session.state
        argument = {"continued": {**state.model_dump(mode="json", exclude={"segments"}), "segments": []}}
        # One value holds 2 MB at most; the sealed segments travel beside it.
        workflow.continue_as_new(args=[argument, *packed(state.segments)])

    # Signals: tolerant, what can't be used is recorded

    @workflow.signal(name=RESPOND_SIGNAL)
    def respond(self, raw: RawValue) -> None:
        """Take answers to open questions."""
        self._inbox.respond(raw)

    @workflow.signal(name=PROMPT_SIGNAL)
    def prompt(self, raw: RawValue) -> None:
        """Queue a prompt."""
        self._inbox.prompt(raw)

    @workflow.signal(name=STOP_SIGNAL)
    async def stop(self, _: RawValue) -> None:
        """Stop the turn gracefully."""
        self._session.stop(workflow.now())
        self._wake()
        await self._cycles.stop()

    @workflow.signal(dynamic=True)
    def unknown(self, name: str, args: Sequence[RawValue]) -> None:
        """Record a signal that nobody knows."""
        self._inbox.unknown(name)

    # Updates: validated, refused before they enter the history

    @workflow.update(name=ANSWER_UPDATE)
    def answer(self, raw: RawValue) -> JsonObject:
        """Take answers; returns an `AnswerReceipt`."""
        return self._updates.answer(decoded(raw))

    @answer.validator
    def check_answer(self, raw: RawValue) -> None:
        """Refuse what `answer` would refuse."""
        self._updates.check(raw, self._updates.check_answer)

    @workflow.update(name=INVOKE_UPDATE)
    async def invoke(self, raw: RawValue) -> JsonObject:
        """Take a prompt or answers; returns a `SessionResult` when the loop stops again."""
        return await self._updates.invoke(decoded(raw))

    @invoke.validator
    def check_invoke(self, raw: RawValue) -> None:
        """Refuse what `invoke` would refuse."""
        self._updates.check(raw, self._updates.check_invoke)

    @workflow.update(name=CLOSE_UPDATE)
    def close(self, raw: RawValue) -> JsonObject:
        """Take nothing any more; the session ends when its turn is over."""
        self._session.close(workflow.now())
        self._wake()
        return views.status(self._session)

    @close.validator
    def check_close(self, raw: RawValue) -> None:
        """Any argument will do; a wrong number of them is refused."""

    # Queries

    @workflow.query(name=INTERRUPTS_QUERY)
    def interrupts(self, given: Any = None) -> list[JsonObject]:
        """The open questions; `{"all": true}` for those of the batch that are answered too."""
        return views.questions(self._session, every=bool(_option(given, "all", False)))

    @workflow.query(name=STATUS_QUERY)
    def status(self, given: Any = None) -> JsonObject:
        """What the session does."""
        return views.status(self._session)

    @workflow.query(name=TRANSCRIPT_QUERY)
    def transcript(self, given: Any = None) -> JsonObject:
        """A page of the conversation, from `{"start": n}` on."""
        start = _option(given, "start", 0)
        return views.transcript(self._session, start if isinstance(start, int) else 0)

    @workflow.query(name=AUDIT_QUERY)
    def audit(self, given: Any = None) -> list[JsonObject]:
        """The audit trail; a page of it from `{"start": n}` on."""
        start = _option(given, "start", None)
        return views.audit(self._session, start if isinstance(start, int) else None)


def _blamed(error: ErrorInfo) -> str:
    """An error's text, with who raised it in front."""
    named = not error.origin or error.message.startswith(error.origin)
    return error.message if named else f"{error.origin}: {error.message}"


def _option(given: Any, key: str, default: Any) -> Any:
    return given.get(key, default) if isinstance(given, dict) else default
