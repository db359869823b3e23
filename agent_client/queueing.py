"""Queueing a prompt for a session: asked first whether it would take it, as far as it can be asked."""

from collections.abc import Awaitable, Callable

from countersign.agent_client.errors import NoWorkerError
from countersign.agent_client.reading import SessionReader
from countersign.agent_client.shell import command
from countersign.agent_core.errors import AnswerRefused


async def send_prompt(reader: SessionReader, send: Callable[[], Awaitable[None]]) -> str | None:
    """Send a prompt, unless the session would refuse it.

    Args:
        reader: The session.
        send: Sends the prompt, and does not wait for what becomes of it.

    Returns:
        Why it is sent but not known to be taken; None if the session stands ready for it.

    Raises:
        AnswerRefused: It would be refused, in the session's own words for that.
    """
    try:
        status = await reader.status()
    except NoWorkerError as error:
        await send()
        return f"{error}. The prompt is sent; whether it is taken shows then"
    if status["ended"] is None and status["lifetime"] == "turn":
        raise AnswerRefused("closed", f"session {reader.id} has one turn only; start one with --open for more")
    if status["status"] == "waiting":
        raise AnswerRefused(
            "interrupted",
            f"session {reader.id} waits for answers, not for a prompt; see: {command('interrupts', reader.id)}",
        )
    await send()
    return None
