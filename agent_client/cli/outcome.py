"""What a session's loop has come to, as commands print it."""

from typing import TYPE_CHECKING

from countersign.agent_client.cli.looking import print_questions
from countersign.agent_client.cli.messages import Transcript
from countersign.agent_client.cli.terminal import columns, print_json

if TYPE_CHECKING:
    from countersign.agent_client.settling import Outcome


def print_outcome(session: str, outcome: "Outcome", as_json: bool) -> None:
    """The questions, or the structured output as JSON, or the last message."""
    if as_json:
        print_json({"session_id": session, **outcome.as_json()})
    elif outcome.questions:
        print_questions(session, outcome.questions)
    elif outcome.structured_output is not None:
        print_json(outcome.structured_output)
    elif outcome.message is not None:
        print(Transcript().text(outcome.message["role"], outcome.message["content"], columns()))
