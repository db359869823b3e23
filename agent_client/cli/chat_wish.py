"""What `chat` is asked for, as it was typed."""

from dataclasses import dataclass

from countersign.agent_client.shell import DEFAULT_TASK_QUEUE


@dataclass(frozen=True)
class Wish:
    """What `chat` was asked for.

    Attributes:
        agent: The agent; "" to take that of the session.
        prompt: The first prompt; None to ask for it.
        session_id: A session to go on with; None to start one with the first prompt.
        responder: Who answers, as a claim.
        task_queue: Of the agent's workers.
        close: Whether leaving ends the session.
    """

    agent: str
    prompt: str | None = None
    session_id: str | None = None
    responder: str | None = None
    task_queue: str = DEFAULT_TASK_QUEUE
    close: bool = False
