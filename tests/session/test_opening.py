"""How a run of a session opens: what it takes over from the run before, and what is its own."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio import workflow

from countersign.agent_core.session import SessionState
from countersign.workflows.session_opening import opening

CARRIED = {"continued": SessionState(session_id="s", run="first", agent="a", cycle=3).model_dump(mode="json")}


def info(run: str, original: str) -> workflow.Info:
    """Of a run that was continued as new; it comes of a reset if the two differ."""
    fields = {"workflow_id": "s", "run_id": run, "original_execution_run_id": original, "continued_run_id": "first"}
    return cast(workflow.Info, SimpleNamespace(**fields))


@pytest.mark.parametrize(
    ("run", "original", "salt", "after_reset"),
    [("second", "second", "first", False), ("third", "second", "third", True)],
)
def test_after_a_reset_no_question_id_and_no_idempotency_key_comes_again(run: Any, original: Any, salt, after_reset):
    """Both stand on the run that a session began with, so that they hold in all its runs; a reset ends that."""
    state = opening(CARRIED, (), info(run, original), datetime(2030, 1, 1, tzinfo=UTC)).state
    assert (state.run, state.after_reset, state.cycle) == (salt, after_reset, 3)
