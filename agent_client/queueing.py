"""Queueing a prompt for a session: asked first whether it would take it, as far as it can be asked."""

from typing import TYPE_CHECKING

from countersign.agent_client.errors import NoWorkerError
from countersign.agent_client.shell import command
from countersign.agent_core.errors import AnswerRefused
from countersign.agent_core.wire import PromptContent

if TYPE_CHECKING:
    from countersign.agent_client.session import SessionHandle


async def send_prompt(session: "SessionHandle", content: PromptContent) -> str | None:
    """Send a prompt, unless the session would refuse it.

    Args:
        session: The session.
        content: Text or content blocks.

    Returns:
        Why it is sent but not known to be taken; None if the session stands ready for it.

    Raises:
        AnswerRefused: It would be refused, in the session's own words for that.
    """
    try:
        status = await session.status()
    except NoWorkerError as error:
        await session.prompt(content)
        return f"{error}. The prompt is sent; whether it is taken shows then"
    if status["ended"] is None and status["lifetime"] == "turn":
        raise AnswerRefused("closed", f"session {session.id} has one turn only; start one with --open for more")
    if status["status"] == "waiting":
        raise AnswerRefused(
            "interrupted",
            f"session {session.id} waits for answers, not for a prompt; see: {command('interrupts', session.id)}",
        )
    await session.prompt(content)
    return None
