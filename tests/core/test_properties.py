"""Whatever models, hooks, handlers and people do: the conversation is valid, and nothing runs unsigned or twice."""

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.core.planned import make_plan
from tests.core.playing import Played, play

from countersign.agent_core.wire import Question


@st.composite
def plans(draw: Any) -> dict[str, Any]:
    """Any plan."""
    return make_plan(lambda options: draw(st.sampled_from(options)))


def approving(played: Played, question: Question) -> bool:
    """True if a person's answer to it approves, by the words of whoever asks."""
    if question.id not in played.given:
        return False
    answer = played.given[question.id]
    if question.name in ("hitl", "judged"):
        trust = question.name == "hitl" and answer == "t"
        edit = isinstance(answer, dict) and answer.get("decision") in ("approve", "edit")
        return answer in ("y",) or answer is True or trust or edit
    return answer == "y" or ((question.name == "confirm" or question.scope == "core") and answer is True)


def covers(played: Played, question: Question, use_id: str, run: Any) -> bool:
    """True if it showed this very call, or if its answer put this input there."""
    tool, value = run
    answer = played.given.get(question.id)
    edit = answer.get("input") if isinstance(answer, dict) else None
    return any(
        call.tool_use_id == use_id
        and call.tool == tool
        and (call.input == value if edit is None else edit["x"] == value["x"])
        for call in question.calls
    )


def gates_of(plan: dict[str, Any]) -> list[str]:
    """Who asks about every call, whatever it is."""
    hooks = [kind for kind in ("ask", "second", "batch") if kind in plan["hooks"]]
    return [*hooks, *(kind for kind in ("hitl", "confirm") if kind in plan["handlers"])]


def approvals(played: Played, gate: str, use_id: str, run: Any) -> int:
    """How many answers of a gate allow this very run."""
    signed = [q for q in played.questions.values() if approving(played, q) and covers(played, q, use_id, run)]
    core = sum(q.scope == "core" for q in signed) if gate == "batch" else 0
    trust = {q.calls[0].tool for q in played.questions.values() if q.name == gate and played.given.get(q.id) == "t"}
    trusted = gate == "hitl" and run[0] in trust
    return sum(q.name == gate for q in signed) + core + (99 if trusted else 0)


@settings(
    max_examples=100,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # a found plan is as readable as a shrunk one, and found much sooner
    suppress_health_check=list(HealthCheck),
)
@given(plans())
def test_whatever_happens_nothing_runs_unsigned_or_twice(plan):
    """Each call has one result in the next message; what ran is what was signed; results of what ran stay."""
    played = asyncio.run(play(plan))
    assert played.faults == []
    for use_id, runs in played.ran.items():
        for gate in gates_of(plan):
            for run in runs:
                allowed = approvals(played, gate, use_id, run)
                repeats = runs.count(run) if run[0] != "again" else 1
                assert allowed >= repeats, f"{run} ran {repeats} times with {allowed} approvals by {gate}: {played}"
        if "retry once" not in plan["hooks"]:
            assert len(runs) == 1, f"{use_id} ran {len(runs)} times"
    retried_bodies = "retry once" in plan["hooks"] and "asks" in json.dumps(plan["messages"])
    if not played.waits and not retried_bodies:  # a body that runs twice may say twice something else
        parts = [part for message in played.agent.messages for part in message["content"] if "toolResult" in part]
        shown = {
            part["toolResult"]["toolUseId"]: " ".join(block["text"] for block in part["toolResult"]["content"])
            for part in parts
        }
        ran = {use_id for use_id, text in shown.items() if text.startswith("ran ") or "had run before" in text}
        assert ran == played.ran.keys(), f"what ran and what the conversation says ran differ: {shown}"
