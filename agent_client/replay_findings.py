"""What would break if some code were deployed: findings, and the judgements on a session and on a history. Pure.

Facts in, findings out; `replaying` gathers the facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from countersign.agent_client.shell import command, temporal_command
from countersign.agent_client.unreadable import without_promise
from countersign.agent_client.worker_faults import LACKING
from countersign.agent_core.deployment import AgentDeployment
from countersign.agent_core.errors import ToolInputError
from countersign.agent_core.session import SessionState
from countersign.agent_core.wire import Question, ShownCall
from countersign.workflows.replayed import Started

Level = Literal["breaks", "notice"]
Kind = Literal[
    "nondeterminism", "replay-failed", "unreadable", "agent-missing", "tool-missing", "input-refused", "asked-again",
    "handler-state", "handler-unknown", "pinned", "ended",
]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One thing that would happen.

    Attributes:
        kind: For programs.
        level: "breaks", or "notice" for what is no fault but worth knowing.
        what: In words.
        advice: What to do about it; "" if nothing.
    """

    kind: Kind
    level: Level
    what: str
    advice: str = ""


def session_findings(state: SessionState, served: Mapping[str, AgentDeployment]) -> list[Finding]:
    """What this code lacks that a session needs when it goes on.

    Args:
        state: The session as it is now.
        served: The agents of the code, by name.
    """
    deployment = served.get(state.agent)
    if deployment is None:
        known = ", ".join(sorted(served)) or "none"
        return [
            Finding(
                "agent-missing",
                "breaks",
                f"its agent {state.agent!r} is not among those of this code: {known}",
                "keep the agent's name while sessions of it live, add its module to --agents, or end the session: "
                + command("stop", state.session_id, "--close"),
            )
        ]
    return [*_waiting_calls(state, deployment), *_handlers(state, deployment)]


def _waiting_calls(state: SessionState, deployment: AgentDeployment) -> list[Finding]:
    """What would become of the calls that people were asked about, for each question: the open ones first."""
    if state.pending is None:
        return []
    asked = [question for status in ("open", "answered") for question in state.pending.questions
             if question.status == status]  # fmt: skip
    found = [
        _waiting_call(state.session_id, question, call, deployment)
        for question in asked
        for call in question.calls
        if call.index not in state.pending.results
    ]
    return [finding for finding in found if finding is not None]


def _waiting_call(session_id: str, question: Question, call: ShownCall, deployment: AgentDeployment) -> Finding | None:
    tool = deployment.template.tool_registry.get(call.tool)
    asked = f"question {question.name!r} ({question.id}{', answered' if question.status == 'answered' else ''})"
    if tool is None:
        return Finding(
            "tool-missing",
            "breaks",
            f"{asked} is about the tool {call.tool!r}, which this code does not have: the call gets an error result",
            f"keep {call.tool!r} until the question is settled, or answer it first: "
            + command("interrupts", session_id),
        )
    try:
        same = tool.canonical_input(call.input) == call.input
    except ToolInputError as error:
        return Finding(
            "input-refused",
            "breaks",
            f"{asked}: {call.tool!r} does not take its input any more ({error}): the call gets an error result",
            "give new parameters a default, or answer the question before the deployment",
        )
    if same:
        return None
    return Finding(
        "asked-again",
        "notice",
        f"{asked}: {call.tool!r} would run with another input than was shown, so an approval is void and a person is "
        "asked again",
    )


def _handlers(state: SessionState, deployment: AgentDeployment) -> list[Finding]:
    """Whether hooks and handlers take what they remember."""
    agent = deployment.fresh()
    try:
        agent.memory.restore(state.handlers)
    except Exception as error:  # a property without a setter, slots, a newer tag: whatever the class does
        return [
            Finding(
                "handler-state",
                "breaks",
                f"what hooks and handlers remember can't be put back: {type(error).__name__}: {error}",
                "let the class take the attributes that it had, or end the session first",
            )
        ]
    return [
        Finding(
            "handler-unknown",
            "notice",
            f"what {owner} remembers is kept, but this code has no such hook or handler; a renamed one starts afresh",
        )
        for owner in agent.memory.unknown()
    ]


def difference(before: Sequence[str], now: Sequence[Started], ended: str) -> str:
    """Where the code leaves a history, in words.

    Args:
        before: Activities and children of the history, in order, as `activity_label` and `child_label` say them.
        now: What the code started.
        ended: How the code ended the workflow; "" if it did not.

    Returns:
        "" if they agree as far as both go.
    """
    for number, label in enumerate(before):
        if number >= len(now):
            if not ended:
                return ""
            return f"the history goes on with {label}, this code ends: {ended}"
        if now[number].label != label:
            place = f" (from {now[number].place})" if now[number].place else ""
            return f"the history has {label} where this code starts {now[number].label}{place}"
    extra = now[len(before) :]
    if not extra:
        return ""
    place = f" (from {extra[0].place})" if extra[0].place else ""
    return f"this code starts {extra[0].label}{place}, which the history does not have there"


def nondeterminism(is_cycle: bool, workflow_id: str, said: str, where: str) -> Finding:
    """The code does something else than the history says.

    Args:
        is_cycle: Whether it is a cycle, which runs policy code, or a session, which runs none.
        workflow_id: Of the cycle or session.
        said: Temporal's own words.
        where: See `difference`; "" if it can't be told.
    """
    text = "; ".join(filter(None, [where, said]))
    if is_cycle:
        advice = (
            "wait until the cycle has ended (it takes seconds, unless a tool runs for long), or version the builds, so "
            "that it ends on the old one; else it fails when a worker takes it over, and its session recovers and asks "
            "about calls that may have run"
        )
    else:
        pinned = ["--versioning-override-behavior", "pinned", "--versioning-override-deployment-name", "NAME"]
        pinned += ["--versioning-override-build-id", "OLD_BUILD"]
        pin = temporal_command("workflow", "update-options", "--workflow-id", workflow_id, *pinned)
        advice = (
            "sessions run no policy code, so this comes with another version of Countersign: keep workers of the old "
            f"version, or of a build that these sessions are pinned to ({pin}), or add workflow.patched where the "
            "commands differ"
        )
    return Finding("nondeterminism", "breaks", text, advice)


def failed(said: str, types: Sequence[str]) -> Finding:
    """The replay ended with an error.

    Args:
        said: Its words.
        types: Its type, and its causes'.
    """
    if not LACKING.isdisjoint(types):
        return Finding(
            "unreadable",
            "breaks",
            f"this process lacks a key or a store that it needs: {without_promise(said)}",
            "give this command what the workers have (COUNTERSIGN_ENCRYPTION_KEYS, COUNTERSIGN_STORAGE); on a worker "
            "that lacks it, too, the task fails again and again until it has it, and nothing is lost",
        )
    advice = "the same would happen on a worker: its task fails again and again until the code is corrected"
    return Finding("replay-failed", "breaks", said, advice)
