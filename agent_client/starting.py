"""What a session is started with: its id, its one argument, and the checks before it is sent. Pure."""

import re
import uuid
from datetime import timedelta
from typing import Any, Literal

from pydantic import ValidationError

from countersign.agent_core.answers import check_prompt
from countersign.agent_core.errors import AnswerRefused, PayloadTooLargeError
from countersign.agent_core.json_values import JsonObject, JsonValue, check_json, json_size
from countersign.agent_core.limits import Limits, check_limit_names
from countersign.agent_core.markdown import code
from countersign.agent_core.shell import command_line, in_namespace
from countersign.agent_core.wire import MAX_PROMPT_BYTES, MAX_VALUE_BYTES, PROTOCOL, PromptContent, SessionOptions

Lifetime = Literal["turn", "open"]
Resume = Literal["each", "all"]

MEMO_AGENT = "countersign_agent"
"""Memo entry with the agent's name: a list can tell it where the search attributes are not registered."""

_MAX_ID_CHARS = 200


def new_session_id(agent: str) -> str:
    """A readable id that nobody has: "<agent>-<10 hex digits>"."""
    return f"{agent}-{uuid.uuid4().hex[:10]}"


def check_session_id(session_id: str) -> None:
    """Check that an id can be typed, and leaves room for the ids made from it.

    Raises:
        ValueError: For an empty or long one, one with spaces or control characters, one like an option or a cycle's id.
    """
    if not session_id or len(session_id) > _MAX_ID_CHARS or not session_id.isprintable() or " " in session_id:
        raise ValueError(f"session id {session_id!r}: use 1 to {_MAX_ID_CHARS} printable characters without spaces")
    if re.search(r"/cycle-\d+$", session_id):
        raise ValueError(f"session id {session_id!r} ends like the id of a session's cycle; end it otherwise")
    if session_id.startswith("-"):
        raise ValueError(f"session id {session_id!r} looks like an option of a command; begin it with something else")


def checked(value: JsonValue, what: str, limit: int = MAX_VALUE_BYTES) -> JsonValue:
    """The value, if it is JSON and small enough to be sent.

    Raises:
        TypeError: If it is not JSON.
        PayloadTooLargeError: Over the limit in bytes.
    """
    check_json(value, what)
    size = json_size(value)
    if size > limit:
        raise PayloadTooLargeError(what, size, limit)
    return value


def checked_prompt(content: Any) -> JsonValue:
    """A prompt that a session takes, by the session's own check.

    Raises:
        ValueError: If it is empty, or neither text nor content blocks that a person may send.
        TypeError: If it is not JSON.
        PayloadTooLargeError: Over a third of what can be sent, so that it travels on.
    """
    checked([{"text": content}] if isinstance(content, str) else content, "the prompt", MAX_PROMPT_BYTES)
    try:
        check_prompt(content)
    except AnswerRefused as refused:
        raise ValueError(str(refused)) from None
    return content


def session_options(
    *,
    lifetime: Lifetime,
    resume: Resume,
    limits: Limits | None,
    invocation_state: JsonObject | None,
    **durations: timedelta | None,
) -> JsonObject:
    """The options of a start as they are sent; what is not given is left to the session's defaults.

    Args:
        lifetime: "turn" or "open".
        resume: "each" or "all".
        limits: Caps on one invocation.
        invocation_state: What hooks and tools get with it; JSON.
        **durations: `handover_after`, `idle_timeout`, `deadline`, `approval_ttl`, `cycle_overrun`.

    Raises:
        TypeError: For a limit that there is not.
        ValueError: For a value out of range.
    """
    given: dict[str, Any] = {"lifetime": lifetime, "resume": resume}
    check_limit_names(limits or {})
    if caps := {name: cap for name, cap in (limits or {}).items() if cap is not None}:
        given["limits"] = caps
    if invocation_state is not None:
        given["invocation_state"] = invocation_state
    for name, duration in durations.items():
        if duration is not None:
            given[f"{name}_s"] = duration.total_seconds()
    try:
        return SessionOptions(**given).model_dump(mode="json", exclude_unset=True)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ValueError(f"can't start with these options: {faults}") from error


def start_argument(agent: str, prompt: PromptContent, options: JsonObject) -> JsonObject:
    """The one argument of a session's workflow.

    Raises:
        ValueError: Without an agent or a prompt.
        TypeError: For a prompt or an option that is not JSON.
        PayloadTooLargeError: Over the limit.
    """
    if not agent:
        raise ValueError("no agent given; name one that a worker serves")
    argument = {"protocol": PROTOCOL, "agent": agent, "prompt": checked_prompt(prompt), **options}
    return dict(checked(argument, "the session's start"))


def static_details(session_id: str, namespace: str) -> str:
    """What the Temporal UI shows of a session from its start on, as Markdown: where to look."""
    show = code(command_line(["show", session_id], in_namespace(namespace)))
    return (
        f"An agent's session. In a shell: {show}\n\n"
        "What it does and what waits stands under Current Details, as long as a worker runs. "
        "Without one, the tab Memo says what waits."
    )
