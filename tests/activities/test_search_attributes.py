"""Search attributes: registered where they may be, usable at once, and never changed."""

import asyncio

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from tests.activities.calls import served

from countersign.activities.search_attributes import ATTRIBUTES, existing, register
from countersign.agent_client.dev_server import DevServer
from countersign.agent_core.wire import SEARCH_ATTRIBUTES_ACTIVITY, SEARCH_PENDING


async def test_what_register_added_can_be_used_when_it_returns(queue):
    """A session that starts right after the worker finds all of them, by the activity that it asks."""
    assert await register(queue.client) == []
    async with queue.worker(served()):
        asking = await queue.start(SEARCH_ATTRIBUTES_ACTIVITY)
        assert await asyncio.wait_for(asking.result(), 60) == list(ATTRIBUTES)


async def test_an_attribute_of_another_type_is_reported_and_left_alone():
    """The server would change its type without a word."""
    text = IndexedValueType.INDEXED_VALUE_TYPE_TEXT
    async with DevServer() as server:
        client = await Client.connect(server.address)
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace="default", search_attributes={SEARCH_PENDING: text})
        )
        listing = ListSearchAttributesRequest(namespace="default")

        async def names() -> list[str]:
            return list((await client.operator_service.list_search_attributes(listing)).custom_attributes)

        async with asyncio.timeout(60):
            while SEARCH_PENDING not in await names():
                await asyncio.sleep(0.05)
        assert await register(client) == [SEARCH_PENDING]
        listed = await client.operator_service.list_search_attributes(listing)
        assert listed.custom_attributes[SEARCH_PENDING] == text


async def test_the_server_is_not_asked_by_every_session(queue, monkeypatch):
    """Once all attributes exist, the next sessions get the answer from the worker's memory."""
    assert await register(queue.client) == []
    asked: list[Client] = []

    async def counted(client: Client) -> list[str]:
        asked.append(client)
        return await existing(client)

    monkeypatch.setattr("countersign.activities.search_attributes.existing", counted)
    async with queue.worker(served()):
        for _ in range(3):
            asking = await queue.start(SEARCH_ATTRIBUTES_ACTIVITY)
            assert await asyncio.wait_for(asking.result(), 60) == list(ATTRIBUTES)
    assert len(asked) == 1
