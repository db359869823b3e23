"""When an in-process session is stored, and as what.

Each time its loop stops, as it is; and before tools run, as a later process is to find it if this one dies with them:
no approval covers a second run. Stores in a thread: a disk may be slow, and the event loop is not ours alone.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from countersign.agent_core.saving import Saving
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import CycleInput, RecoveredCycle, Recovery

if TYPE_CHECKING:
    from countersign.agent_core.agent import Agent

T = TypeVar("T")

REASON = "its process ended while it ran"

IDEMPOTENT_RERUNS = 1
"""So often an idempotent call runs again by itself after its process died; then a person is asked about it, too."""


class Keeper:
    """Keeps one agent's session, if the agent has a session manager.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._saving = Saving(agent.session_manager, agent.agent_id) if agent.session_manager is not None else None

    def restore(self, session: Session) -> Session:
        """The session that is stored, put into the agent; if none is, the given one.

        Blocks: an agent is built in code that can't wait.
        """
        if self._saving is None:
            return session
        agent = self._agent
        messages, agent_state, kept = self._saving.restore(agent.messages, agent.state.get())
        if kept is not None:
            session = Session(SessionState.model_validate(kept))
        agent._load(messages, agent_state, session.state.handlers)
        session.state.agent_state = agent_state
        session.state.replace([list(messages)])
        return session

    async def kept(self, session: Session, work: Awaitable[T]) -> T:
        """Do some work and store what the session is then, however it ended.

        Raises:
            BaseException: What the work raised; that the session could not be stored either is noted on it.
            Exception: If only that failed.
        """
        try:
            result = await work
        except GeneratorExit as error:  # nobody waits any more, so nothing here may
            with noted_on(error, "the session could not be stored"):
                self._taken(session)()
            raise
        except BaseException as error:
            with noted_on(error, "the session could not be stored"):
                await _in_a_thread(self._taken(session))
            raise
        await _in_a_thread(self._taken(session))
        return result

    async def before_tools(
        self, session: Session, given: CycleInput, done: RecoveredCycle, idempotent: Collection[int], now: datetime
    ) -> None:
        """Store the session as if its process had died while these tools ran.

        Args:
            session: The session; it stays as it is.
            given: What the running cycle has started from.
            done: What that cycle has done; calls that are about to run count as unknown.
            idempotent: The calls among them that may simply run again, with the same key.
            now: The present moment.

        Raises:
            Exception: If it can't be stored; then the tools must not run.
        """
        if self._saving is None:
            return
        lost, found = Session(session.state.model_copy(deep=True)), done.model_copy(deep=True)
        again = idempotent if lost.state.failures < IDEMPOTENT_RERUNS else ()
        lost.state.failures = 0  # however many there were: its calls are asked about, and not given up
        for call in found.calls:
            if call.status == "unknown":
                call.status, call.detail = ("never_started" if call.index in again else "unknown"), REASON
        lost.recover(Recovery(reason=REASON, cycles=[found]), given, now)
        # The conversation as hooks have made it: what they took out of a prompt is not written down here either.
        await _in_a_thread(self._saving.taken(lost.state, self._agent.messages, lost.state.agent_state))

    def _taken(self, session: Session) -> Callable[[], None]:
        if self._saving is None:
            return _nothing
        return self._saving.taken(session.state, self._agent.messages, self._agent.state.get())


def _nothing() -> None:
    """There is no session manager."""


async def _in_a_thread(store: Callable[[], None]) -> None:
    if store is _nothing:
        return
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(store)


@contextlib.contextmanager
def noted_on(first: BaseException, what: str) -> Iterator[None]:
    """Let a second error stand beside the first one, which counts."""
    try:
        yield
    except Exception as error:
        first.add_note(f"{what}: {type(error).__name__}: {error}")
