"""Histories recorded from real runs of every version replay on the code of this checkout."""

import pytest
from tests.replay.record import AGENTS, HISTORIES, released_versions
from tests.replay.scenarios import SCENARIOS

from countersign import __version__
from countersign.agent_client.replay_histories import read_history
from countersign.agent_client.replaying import Rehearsal

FILES = sorted(HISTORIES.glob("*/*.json"))
EARLIER = sorted((HISTORIES.parent / "earlier").glob("*.json"))
"""From before a patch, of a version that was never released."""


@pytest.fixture(scope="module")
def rehearsal():
    """The code of this checkout, with the agents that were recorded."""
    return Rehearsal([AGENTS])


def test_every_version_is_recorded():
    """Those that were released, and this one, with all its scenarios and their cycles."""
    assert {*released_versions(), __version__} == {file.parent.name for file in FILES}
    present = {file.stem for file in FILES if file.parent.name == __version__}
    assert set(SCENARIOS) <= present
    assert {f"{name}-cycle-1" for name in SCENARIOS} <= present


@pytest.mark.parametrize("file", [*FILES, *EARLIER], ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_a_recorded_history_replays(rehearsal, file):
    """Sessions and cycles that began under older code go on under this one."""
    replayed = await rehearsal.replay(read_history(file))
    assert replayed.events > 0
    assert [finding.what for finding in replayed.findings] == []
