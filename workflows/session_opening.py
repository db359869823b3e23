"""How a session opens: its start argument read and checked, or the state of the run before taken over.

Whatever would fail a workflow task for ever later on (a duration no timer holds, an id no child can
bear, a name no search attribute takes) is refused here, with its name.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from countersign.agent_core.answers import check_prompt
from countersign.agent_core.conversation import unpacked
from countersign.agent_core.errors import AnswerRefused, UnreadableHereError, reason_of
from countersign.agent_core.json_values import JsonObject, check_json
from countersign.agent_core.limits import check_limit_names
from countersign.agent_core.session import Session, SessionState
from countersign.agent_core.wire import PROTOCOL, SessionOptions, timestamp
from countersign.workflows.intake import decoded

INVALID_START = "InvalidStart"

LONGEST_S = 100 * 365 * 86_400.0
"""The longest duration that is taken, in seconds (a century): far longer ones overflow datetimes and timers."""

AGENT_NAME_BYTES = 255
"""The server refuses keyword search attributes over 2,048 bytes; a name needs far fewer."""

SESSION_ID_BYTES = 950
"""The server takes ids of 1,000 bytes, and "/cycle-<n>" comes after the session's."""


def opening(start: Any, pieces: Sequence[Any], info: workflow.Info, now: datetime) -> Session:
    """A session from the argument of its workflow: a start, or the state of the run before and its conversation.

    Args:
        start: The first argument.
        pieces: The sealed segments of the conversation; only a run that was continued as new has any.
        info: Of the workflow.
        now: The present moment.

    Raises:
        ApplicationError: If it can't be read, naming the fault.
        UnreadableHereError: If only this worker can't read it; the task is tried again, and nothing is lost.
    """
    try:
        given = decoded(start)
        if not isinstance(given, dict):
            raise ValueError(f"the argument must be an object, not {type(given).__name__}")
        session = _continued(given["continued"], pieces, info) if "continued" in given else _started(given, info, now)
    except UnreadableHereError:
        raise
    except (ValueError, ValidationError, AnswerRefused) as error:
        raise ApplicationError(
            f"the session can't be started: {reason_of(error)}", type=INVALID_START, non_retryable=True
        ) from error
    # The server sends the answers of the run that was reset once more, and they count: the calls are doubted instead.
    if info.run_id != info.original_execution_run_id:
        session.state.after_reset = True
        session.state.run = info.run_id  # no question's id, and no idempotency key, is one of the run before
    return session


def _continued(carried: Any, pieces: Sequence[Any], info: workflow.Info) -> Session:
    """The session of the run before. Only the server says that there was one: a state may hold approvals."""
    if info.continued_run_id is None:
        raise ValueError('"continued" is for runs that were continued as new; start with "agent" and "prompt"')
    state = SessionState.model_validate(carried)
    state.segments.extend(unpacked(decoded(piece) for piece in pieces))
    return Session(state)


def _started(given: JsonObject, info: workflow.Info, now: datetime) -> Session:
    """A session that begins."""
    limits = given.get("limits")
    try:
        check_json(given, "the argument")
        check_limit_names(limits if isinstance(limits, dict) else ())
    except TypeError as error:
        raise ValueError(str(error)) from error
    if (protocol := given.get("protocol", PROTOCOL)) != PROTOCOL:
        raise ValueError(f"protocol {protocol!r:.100} is not spoken here; this worker speaks {PROTOCOL}")
    options = SessionOptions.model_validate(given)
    for name, value in options:
        if name.endswith("_s") and value is not None and value > LONGEST_S:
            raise ValueError(f"{name} is {value:g} seconds; at most {LONGEST_S:g} (100 years) are taken")
    agent = given.get("agent")
    if not isinstance(agent, str) or not agent:
        raise ValueError(f"agent must be the name of an agent, not {agent!r:.100}")
    if len(agent.encode()) > AGENT_NAME_BYTES:
        raise ValueError(f"agent is {len(agent.encode())} bytes long; a name has at most {AGENT_NAME_BYTES}")
    if len(info.workflow_id.encode()) > SESSION_ID_BYTES:
        raise ValueError(f"the workflow id is {len(info.workflow_id.encode())} bytes long; at most {SESSION_ID_BYTES}")
    state = SessionState(
        session_id=info.workflow_id, run=info.run_id, agent=agent, options=options, since=timestamp(now), fresh=True
    )
    session = Session(state)
    if options.lifetime == "turn" or given.get("prompt") is not None:
        check_prompt(given.get("prompt"))
        session.prompt(given.get("prompt"), now)
    return session
