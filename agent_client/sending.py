"""Sending an update until its outcome is known.

One id per update, kept over every re-send: the session gives an id it knows its first outcome. It
is sent again when no reply came and when the run ended under it; never after a refusal.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateHandle, WorkflowUpdateStage
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_client.errors import ConnectionFailedError, NoReplyError
from countersign.agent_client.shell import command
from countersign.agent_client.translation import end_of, is_transient, translated
from countersign.agent_client.unreadable import readable
from countersign.agent_core.json_values import JsonValue
from countersign.agent_core.wire import INVOKE_UPDATE

T = TypeVar("T")

DEFAULT_PATIENCE = timedelta(seconds=60)


def backoff_s(first_s: float = 0.1, most_s: float = 5.0) -> Iterator[float]:
    """Pauses between attempts in seconds: doubling up to a cap, for ever."""
    pause_s = first_s
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, most_s)


async def paused(pauses_s: Iterator[float]) -> AsyncIterator[None]:
    """Rounds of a loop that polls: the first at once, a pause before each other one."""
    while True:
        yield
        await asyncio.sleep(next(pauses_s))


@dataclass(frozen=True)
class Update:
    """One update to one session.

    Attributes:
        session_id: The session.
        name: The update's name.
        argument: Its one argument.
        update_id: Its id, the same for every re-send.
    """

    session_id: str
    name: str
    argument: JsonValue
    update_id: str


async def deliver(client: Client, update: Update, patience: timedelta, *, wait_long: bool = False) -> Any:
    """Send an update, again if need be, until its outcome is known.

    Args:
        client: Temporal's client.
        update: What is sent.
        patience: How long to go on without a confirmation.
        wait_long: True if the outcome may take any time once the session has accepted the update;
            then patience counts only while it has not.

    Raises:
        AnswerRefused: The session refused it.
        SessionEndedError, SessionNotFoundError: It is not there any more, or never was.
        SessionUnreadableError: It has an outcome, which can't be decoded here.
        NoReplyError: Patience is over; it may or may not have been taken.
    """
    loop = asyncio.get_running_loop()
    give_up_s = loop.time() + patience.total_seconds()
    trouble: TemporalError | None = None
    for pause_s in backoff_s():
        try:
            handle = await within(give_up_s - loop.time(), lambda: _send(client, update, accepted_only=wait_long))
            if not wait_long:
                with readable(update.session_id):
                    return await within(give_up_s - loop.time(), handle.result)
            try:
                with readable(update.session_id):
                    return await uncancelled(handle.result)
            finally:
                give_up_s = loop.time() + patience.total_seconds()
        except TimeoutError:
            break
        except TemporalError as error:
            await _raise_unless_worth_another(error, client, update.session_id)
            trouble = error
        if loop.time() + pause_s > give_up_s:
            break
        await asyncio.sleep(pause_s)
    raise NoReplyError(_no_reply(update, patience, trouble), update.update_id) from trouble


async def _send(client: Client, update: Update, *, accepted_only: bool) -> WorkflowUpdateHandle[Any]:
    stage = WorkflowUpdateStage.ACCEPTED if accepted_only else WorkflowUpdateStage.COMPLETED
    return await client.get_workflow_handle(update.session_id).start_update(
        update.name, update.argument, wait_for_stage=stage, id=update.update_id
    )


async def _raise_unless_worth_another(error: TemporalError, client: Client, session_id: str) -> None:
    if is_transient(error):
        return
    if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
        ended = await end_of(client, session_id)
        if ended is None or isinstance(ended, ConnectionFailedError):
            return  # it continued as new between the two requests; or nobody can say
        raise ended from error
    raise await translated(error, client, session_id) from error


def _no_reply(update: Update, patience: timedelta, trouble: TemporalError | None) -> str:
    cause = f" (last: {trouble})" if trouble is not None and not isinstance(trouble, WorkflowUpdateFailedError) else ""
    again = "and send the same again: what was taken once is not taken twice"
    if update.name == INVOKE_UPDATE:
        again = (
            f"and look what became of it: {command('show', update.session_id)}. Sent again it would run twice, "
            f"unless it is sent with its update id, {update.update_id} (invoke(update_id=...), prompt --update-id)"
        )
    return (
        f"session {update.session_id!r} has not confirmed the {update.name} within "
        f"{patience.total_seconds():g} s{cause}: it may or may not have been taken. Check that a worker runs {again}"
    )


def moved_without_reply(session_id: str, update_id: str) -> str:
    """What to say of an `invoke` that was taken, and whose outcome nobody tells."""
    return (
        f"session {session_id!r} has taken this, continued as new, and does not tell how it went. Check that a worker "
        f"runs and look: {command('show', session_id)}; or send the same again with its update id, {update_id}"
    )


async def uncancelled(call: Callable[[], Awaitable[T]]) -> T:
    """Await a call of Temporal's client so that a cancel of the caller stays a cancel.

    The client turns `asyncio.CancelledError` into an error of its own, which would be taken for a
    lost connection here and sent again.
    """
    return await within(None, call)


async def within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    """Await a call for at most so many seconds; None for any time.

    Raises:
        TimeoutError: If it takes longer; it is cancelled then.
    """
    task = asyncio.ensure_future(call())
    try:
        done, _ = await asyncio.wait({task}, timeout=None if seconds is None else max(seconds, 0.0))
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
    if not done:
        raise TimeoutError
    return task.result()


def _forget(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()
