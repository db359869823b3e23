"""Search attributes of sessions that begin when their worker has no place for one more activity."""

import asyncio

from tests.durable.test_waiting import questions

from countersign.agent_core.wire import SEARCH_PENDING

BUSY_S = 14
"""Longer than a run that ends waits for what it asks about search attributes."""


async def test_a_session_of_a_busy_worker_is_found_by_its_attributes(lab, client):
    """It asks which attributes exist until a worker has time for it, and one that is closed meanwhile ends without."""
    worker = lab.worker("lab.agents", None, "--max-concurrent-activities", "1")
    busy = await lab.start(worker, "free", f"effects={lab.effects_file} slow:a:{BUSY_S}")
    async with asyncio.timeout(30):
        while "a-began" not in lab.effects():
            await asyncio.sleep(0.05)
    waiting = await lab.start(worker, "per-call", f"effects={lab.effects_file} effect:b")
    closed = await lab.start(worker, "free", None, lifetime="open")
    await closed.close()
    await closed.result()
    assert "a-ended" not in lab.effects()
    await questions(waiting, 1)
    async with asyncio.timeout(30):
        while True:
            described = await client.get_workflow_handle(waiting.id).describe()
            if described.raw_description.workflow_execution_info.search_attributes.indexed_fields.get(SEARCH_PENDING):
                break
            await asyncio.sleep(0.1)
    await busy.result()
