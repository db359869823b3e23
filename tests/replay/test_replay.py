"""Histories recorded from real runs of every version replay on the code of this checkout."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.replay.record import AGENTS, HISTORIES, released_versions
from tests.replay.scenarios import SCENARIOS

from countersign import __version__
from countersign.agent_client.replay_histories import read_history
from countersign.agent_client.replaying import Rehearsal
from countersign.workflows import cycle_effects, cycles, inbox, publishing, session

FILES = sorted(HISTORIES.glob("*/*.json"))
EARLIER = sorted((HISTORIES.parent / "earlier").glob("*/*.json"))
"""From before a patch, of a version that was never released; a folder for each way of before."""

UNRECORDED = {
    cycles.LATE_STOP_PATCH,  # it takes a race, which no scenario wins at will
    publishing.CARDS_PATCH,  # likewise
    session.BOUND_PATCH,  # likewise
    session.SHED_PATCH,  # it takes a state of 2 MB
}
PATCHES = {
    patch
    for module in (cycle_effects, cycles, inbox, publishing, session)
    for name, patch in vars(module).items()
    if name.endswith("_PATCH") and patch not in UNRECORDED
}


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


def patches(file: Path) -> Iterator[str]:
    """The patches that a history has met."""
    for event in json.loads(file.read_text())["events"]:
        marker = event.get("markerRecordedEventAttributes", {})
        if marker.get("markerName") == "core_patch":
            [payload] = marker["details"]["patch-data"]["payloads"]
            yield json.loads(base64.b64decode(payload["data"]))["id"]


def test_every_patch_is_recorded():
    """The way that sessions of this version take is replayed, and not only those of before."""
    recorded = {patch for file in FILES if file.parent.name == __version__ for patch in patches(file)}
    assert len(PATCHES) >= 5
    assert PATCHES - recorded == set()


@pytest.mark.parametrize("file", [*FILES, *EARLIER], ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_a_recorded_history_replays(rehearsal, file):
    """Sessions and cycles that began under older code go on under this one."""
    replayed = await rehearsal.replay(read_history(file))
    assert replayed.events > 0
    assert [finding.what for finding in replayed.findings] == []
