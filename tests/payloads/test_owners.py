"""Whose a payload is decides what is stored, and under which name."""

import pytest
from temporalio.converter import StorageDriverActivityInfo, StorageDriverStoreContext, StorageDriverWorkflowInfo

from countersign.agent_client.payloads.owners import is_own, owned, session_of

TO_CYCLE = StorageDriverWorkflowInfo(namespace="n", id="s/cycle-3", type="AgentCycle")
CYCLE_RESULT = StorageDriverWorkflowInfo(namespace="n", id="s", run_id="r")
SESSION = StorageDriverWorkflowInfo(namespace="n", id="s", run_id="r", type="AgentSession")
SIGNAL = StorageDriverWorkflowInfo(namespace="n", id="s")


@pytest.mark.parametrize(
    ("target", "own"),
    [(TO_CYCLE, True), (CYCLE_RESULT, True), (None, True), (SESSION, False), (SIGNAL, False)],
    ids=["cycle", "cycle-result", "by-hand", "session", "signal"],
)
def test_what_goes_through_cycles_is_our_own(target, own):
    """What clients send to a session, or read of it, is not."""
    assert is_own(target) == own


@pytest.mark.parametrize("target", [TO_CYCLE, CYCLE_RESULT, SESSION, SIGNAL])
def test_every_blob_of_a_session_stands_under_its_name(target):
    """Whatever run or cycle it is for, so that it is stored once and can be deleted with the session."""
    expected = StorageDriverWorkflowInfo(namespace="n", id="s", type="AgentSession")
    assert owned(StorageDriverStoreContext(target)).target == expected


def test_other_targets_stay():
    """An activity without a workflow, and nothing at all outside an activity."""
    alone = StorageDriverStoreContext(StorageDriverActivityInfo(namespace="n", id="a"))
    assert owned(alone) == alone
    assert owned(StorageDriverStoreContext()) == StorageDriverStoreContext()


def test_a_cycle_s_id_leads_to_its_session():
    """Only the last part counts."""
    assert session_of("a/cycle-1/cycle-12") == "a/cycle-1"
    assert session_of("a/cycle-x") == "a/cycle-x"
