"""Where a client starts sessions: the setting is the same as a worker's."""

import uuid

import pytest

from countersign.client import AgentClient


@pytest.fixture
def setting(monkeypatch) -> str:
    """COUNTERSIGN_TASK_QUEUE, with a place for the agent's name."""
    base = f"queue-{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("COUNTERSIGN_TASK_QUEUE", base + "-{agent}")
    return base


async def test_a_client_that_names_no_queue_takes_the_one_of_the_environment(temporal_server, client, setting):
    """With the agent's name in its place, however the client was made."""
    for made in (await AgentClient.connect(temporal_server), AgentClient(client)):
        session = await made.start("janitor", "clean up")
        assert (await session.summary()).task_queue == f"{setting}-janitor"
        await session.terminate("test")


@pytest.mark.usefixtures("setting")
async def test_a_queue_that_is_named_counts_more_than_the_environment(temporal_server):
    """As with every setting."""
    assert (await AgentClient.connect(temporal_server, task_queue="payments")).task_queue == "payments"


async def test_without_a_setting_it_is_countersign(temporal_server, monkeypatch):
    """A variable that is empty is none."""
    monkeypatch.setenv("COUNTERSIGN_TASK_QUEUE", "")
    assert (await AgentClient.connect(temporal_server)).task_queue == "countersign"
