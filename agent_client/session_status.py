"""What a session says that it does, as client code gets it. Values only."""

from typing import Literal, TypedDict

from countersign.agent_client.starting import Lifetime
from countersign.agent_core.json_values import JsonObject


class SessionStatus(TypedDict):
    """What a session does: what its status query says, in plain JSON, and how its workflow ended.

    Attributes:
        session_id: Its id.
        agent: Its agent's name.
        status: "closed" once it takes nothing more.
        since: When its status came to be so, as an ISO time.
        turn: Prompts that were begun.
        cycle: Number of its last cycle that has ended; 0 before that.
        lifetime: As it was started.
        open_questions: How many.
        next_deadline: The earliest one of its open questions, as an ISO time.
        queued_prompts: Prompts that wait for their turn.
        stop_reason: Of the last turn that has ended.
        error: Its failure, as an `ErrorInfo` in JSON.
        ended: How its workflow ended ("completed", "terminated", …); None while it runs.
    """

    session_id: str
    agent: str
    status: Literal["running", "waiting", "idle", "closed"]
    since: str
    turn: int
    cycle: int
    lifetime: Lifetime
    open_questions: int
    next_deadline: str | None
    queued_prompts: int
    stop_reason: str | None
    error: JsonObject | None
    ended: str | None
