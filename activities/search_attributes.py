"""Which of our search attributes the namespace has, and registering those that are missing."""

import logging

from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from countersign.agent_core.wire import (
    SEARCH_AGENT,
    SEARCH_APPROVERS,
    SEARCH_ATTRIBUTES_ACTIVITY,
    SEARCH_DEADLINE,
    SEARCH_PENDING,
    SEARCH_STATUS,
)

logger = logging.getLogger(__name__)

ATTRIBUTES = {
    SEARCH_AGENT: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_STATUS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_PENDING: IndexedValueType.INDEXED_VALUE_TYPE_INT,
    SEARCH_APPROVERS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    SEARCH_DEADLINE: IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}


class SearchAttributeActivities:
    """The activity that a session asks before it upserts anything."""

    @activity.defn(name=SEARCH_ATTRIBUTES_ACTIVITY)
    async def existing(self) -> list[str]:
        """Names of our attributes that exist with the right type; none if the server does not say."""
        try:
            return await existing(activity.client())
        except RPCError as error:
            logger.warning("search attributes can't be listed (%s); sessions go without", error)
            return []


async def existing(client: Client) -> list[str]:
    """Names of our attributes that the namespace has, with the right type."""
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    return [name for name, kind in ATTRIBUTES.items() if listed.custom_attributes.get(name) == kind]


async def register(client: Client) -> list[str]:
    """Register the attributes that are missing, one by one.

    Returns:
        Those that are missing still; sessions then go without them.
    """
    try:
        missing = [name for name in ATTRIBUTES if name not in await existing(client)]
    except RPCError as error:
        logger.warning("search attributes can't be listed: %s", error)
        return list(ATTRIBUTES)
    refused: list[str] = []
    for name in missing:
        request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes={name: ATTRIBUTES[name]})
        try:
            await client.operator_service.add_search_attributes(request)
        except RPCError as error:
            refused.append(name)
            logger.warning("search attribute %s is missing and can't be registered: %s", name, error)
    return refused
