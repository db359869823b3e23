"""Which of our search attributes the namespace has, and registering those that are missing."""

import asyncio
import logging
import time
from datetime import timedelta

from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from countersign.agent_core.wire import (
    SEARCH_AGENT,
    SEARCH_APPROVERS,
    SEARCH_ATTRIBUTES_ACTIVITY,
    SEARCH_DEADLINE,
    SEARCH_PENDING,
    SEARCH_STATUS,
)

RPC_TIMEOUT = timedelta(seconds=5)
VISIBLE_TRIES, VISIBLE_INTERVAL_S = 20, 0.1
REMEMBERED_S = 60.0

logger = logging.getLogger(__name__)

ATTRIBUTES = {
    SEARCH_AGENT: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_STATUS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    SEARCH_PENDING: IndexedValueType.INDEXED_VALUE_TYPE_INT,
    SEARCH_APPROVERS: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    SEARCH_DEADLINE: IndexedValueType.INDEXED_VALUE_TYPE_DATETIME,
}


_NEVER_TOLD = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.UNIMPLEMENTED)


class SearchAttributeActivities:
    """The activity that a session asks before it upserts anything."""

    def __init__(self) -> None:
        self._complete_until = 0.0

    @activity.defn(name=SEARCH_ATTRIBUTES_ACTIVITY)
    async def existing(self) -> list[str]:
        """Names of our attributes that exist with the right type; none if this worker may not know.

        Once all of them exist, the server is asked once a minute and not by every session. Safe to repeat.

        Raises:
            RPCError: If the server does not answer; worth a retry.
        """
        if time.monotonic() < self._complete_until:
            return list(ATTRIBUTES)
        try:
            found = await existing(activity.client())
        except RPCError as error:
            if error.status not in _NEVER_TOLD:
                raise
            logger.warning("search attributes can't be listed (%s); sessions go without", error)
            return []
        if len(found) == len(ATTRIBUTES):
            self._complete_until = time.monotonic() + REMEMBERED_S
        return found


async def existing(client: Client) -> list[str]:
    """Names of our attributes that the namespace has, with the right type."""
    present = await listed(client)
    return [name for name, kind in ATTRIBUTES.items() if present.get(name) == kind]


async def listed(client: Client) -> dict[str, IndexedValueType.ValueType]:
    """Those of our names that the namespace has, with the types that they have there."""
    answer = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace), timeout=RPC_TIMEOUT
    )
    return {name: kind for name, kind in answer.custom_attributes.items() if name in ATTRIBUTES}


async def register(client: Client) -> list[str]:
    """Register the attributes that are missing, one by one, and wait until they can be used.

    One that exists with another type is left alone: the server would take the change without a word.

    Returns:
        Those that are missing still, or of another type; sessions then go without them.
    """
    try:
        present = await listed(client)
        for name, kind in ATTRIBUTES.items():
            if name not in present:
                await _add(client, name, kind)
            elif present[name] != kind:
                logger.warning("search attribute %s exists with another type than %s", name, type_name(kind))
        return await _missing(client, {name for name in ATTRIBUTES if name not in present})
    except RPCError as error:
        logger.warning("search attributes can't be listed: %s", error)
        return list(ATTRIBUTES)


async def _add(client: Client, name: str, kind: IndexedValueType.ValueType) -> None:
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes={name: kind})
    try:
        await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        logger.warning("search attribute %s (%s) can't be registered: %s", name, type_name(kind), error)


async def _missing(client: Client, added: set[str]) -> list[str]:
    """What is missing in the end; what was just added shows up after a moment."""
    for _ in range(VISIBLE_TRIES):
        found = await existing(client)
        if added <= set(found):
            break
        await asyncio.sleep(VISIBLE_INTERVAL_S)
    return [name for name in ATTRIBUTES if name not in found]


def type_name(kind: IndexedValueType.ValueType) -> str:
    """The name that `temporal operator search-attribute create --type` takes."""
    return IndexedValueType.Name(kind).removeprefix("INDEXED_VALUE_TYPE_").title().replace("_", "")
