"""The dev server that tests and the demo start."""

import pytest

from countersign.agent_client.dev_server import DevServer
from countersign.agent_client.errors import ConnectionFailedError


async def test_a_taken_port_is_refused_and_can_be_taken_over_once_it_is_free():
    """Two servers on one port would look like one; a restart keeps the address."""
    async with DevServer() as first:
        port = int(first.address.split(":")[1])
        with pytest.raises(ConnectionFailedError, match=f"port {port} is in use"):
            await DevServer(port=port).start()
    async with DevServer(port=port) as again:
        assert again.address == first.address
