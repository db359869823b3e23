"""What a session shows to those who do not ask it: search attributes, memo, and the Temporal UI's details."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy, SearchAttributeKey, SearchAttributeUpdate
from temporalio.exceptions import ActivityError

from countersign.agent_core.session import Session, views
from countersign.agent_core.wire import (
    MEMO_QUESTIONS,
    SEARCH_AGENT,
    SEARCH_APPROVERS,
    SEARCH_ATTRIBUTES_ACTIVITY,
    SEARCH_DEADLINE,
    SEARCH_PENDING,
    SEARCH_STATUS,
)
from countersign.workflows.details import session_details
from countersign.workflows.metering import Metering
from countersign.workflows.results import UnreadableResultError, read

_AGENT = SearchAttributeKey.for_keyword(SEARCH_AGENT)
_STATUS = SearchAttributeKey.for_keyword(SEARCH_STATUS)
_PENDING = SearchAttributeKey.for_int(SEARCH_PENDING)
_APPROVERS = SearchAttributeKey.for_keyword_list(SEARCH_APPROVERS)
_DEADLINE = SearchAttributeKey.for_datetime(SEARCH_DEADLINE)


CARDS_PATCH = "questions-that-are-gone-leave-the-memo"
"""Since 2026-11-30. Before it, questions that were answered while a session learned of its search attributes stayed in
its memo for good."""

LEARNING_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1))
"""For want of a free worker in its first seconds, no session that waits for days should go without them."""


class Publisher:
    """Keeps the outside view of one session up to date; sends only what has changed.

    Args:
        session: The session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.metering = Metering(session)
        self._existing: frozenset[str] = frozenset()
        self._shown: tuple[Any, ...] = ()
        self._carded: tuple[str, ...] = ()

    async def learn(self) -> None:
        """Ask which search attributes exist, and show the session: an unknown one would fail its tasks for ever."""
        try:
            raw = await workflow.execute_activity(
                SEARCH_ATTRIBUTES_ACTIVITY,
                result_type=RawValue,
                start_to_close_timeout=timedelta(seconds=5),
                retry_policy=LEARNING_RETRY,
                summary="which search attributes exist",
            )
            names = read(raw, list[str], "their names")
        except (ActivityError, UnreadableResultError):
            names = []
        self._existing, self._shown = frozenset(names), ()
        self.publish()

    async def learn_first(self) -> None:
        """The same as it once was, by a local activity, and before anything else.

        If an update came in the task that had the result of a local activity, the SDK (1.35) kept another order of
        commands than a replay has: such a session could not be taken over by another worker.
        """
        try:
            names: list[str] = await workflow.execute_local_activity(
                SEARCH_ATTRIBUTES_ACTIVITY,
                result_type=list[str],
                start_to_close_timeout=timedelta(seconds=5),
                retry_policy=RetryPolicy(maximum_attempts=2),
                summary="which search attributes exist",
            )
        except ActivityError:
            names = []
        self._existing = frozenset(names)

    def publish(self) -> None:
        """Show the session as it is now, if that is not what is shown already."""
        self.metering.measure()
        word = views.public_status(self._session)
        ids = tuple(question.id for question in self._session.open_questions())
        self.describe()
        if (word, ids) == self._shown:
            return
        asked_before = self._shown[1] if self._shown else None
        self._shown = (word, ids)
        changes = [change for change in self._attributes(word, len(ids)) if change.key.name in self._existing]
        if changes:
            workflow.upsert_search_attributes(changes)
        due = ids != (asked_before or ()) or (asked_before is None and workflow.info().continued_run_id)
        if due or (ids != self._carded and workflow.patched(CARDS_PATCH)):
            self._carded = ids
            workflow.upsert_memo({MEMO_QUESTIONS: views.cards(self._session)})

    def describe(self) -> None:
        """Show the details alone: no command, so it may be called anywhere."""
        workflow.set_current_details(session_details(self._session, workflow.info().namespace))

    def _attributes(self, word: str, waiting: int) -> list[SearchAttributeUpdate[Any]]:
        deadline = self._session.next_deadline()
        return [
            _AGENT.value_set(self._session.state.agent),
            _STATUS.value_set(word),
            _PENDING.value_set(waiting),
            _APPROVERS.value_set([]) if waiting else _APPROVERS.value_unset(),
            _DEADLINE.value_set(deadline) if deadline else _DEADLINE.value_unset(),
        ]
