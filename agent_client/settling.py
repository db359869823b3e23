"""Waiting until a session's loop has stopped: at questions, at rest, or at its end."""

import asyncio
from datetime import timedelta

from temporalio.client import Client

from countersign.agent_client.errors import NoWorkerError, SessionEndedError
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.sending import backoff_s
from countersign.agent_client.translation import end_of
from countersign.agent_core.wire import Question


async def settled_questions(temporal: Client, reader: SessionReader, timeout: timedelta | None) -> list[Question]:
    """See `SessionHandle.wait_for_questions`."""
    async with asyncio.timeout(timeout.total_seconds() if timeout is not None else None):
        for pause_s in backoff_s(0.05, 2.0):
            if (questions := await _settled(temporal, reader)) is not None:
                return questions
            await asyncio.sleep(pause_s)
    raise AssertionError("the pauses never end")


async def _settled(temporal: Client, reader: SessionReader) -> list[Question] | None:
    """The open questions once the loop has stopped; None while it runs or nobody can say."""
    try:
        word = (await reader.status())["status"]
    except NoWorkerError:
        return await _without_worker(temporal, reader.id)
    if word == "waiting":
        return await reader.interrupts()
    return None if word == "running" else []


async def _without_worker(temporal: Client, session_id: str) -> list[Question] | None:
    ended = await end_of(temporal, session_id)
    if ended is None:
        return None
    if isinstance(ended, SessionEndedError):
        return []
    raise ended
