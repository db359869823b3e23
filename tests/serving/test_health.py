"""What /readyz says of the connection; with a real worker in tests/durable/test_metrics.py."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from countersign.serving.health import Health


class Closed:
    """A client whose server has one answer about the namespace."""

    namespace = "agents"

    def __init__(self, status: RPCStatusCode) -> None:
        self._status, self.workflow_service = status, self

    async def describe_namespace(self, request: object, timeout: object) -> None:
        raise RPCError("no", self._status, b"")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("NOT_FOUND", "refuses this worker its namespace"),
        ("PERMISSION_DENIED", "refuses this worker its namespace"),
        ("UNAVAILABLE", "does not answer"),
        ("RESOURCE_EXHAUSTED", "None"),
    ],
)
async def test_a_worker_whose_namespace_is_closed_to_it_is_not_ready(status, reason):
    """The namespace is gone, or the rights are: it polls in vain. A server that limits requests has answered."""
    health, client = Health(), Closed(RPCStatusCode[status])
    health.serving(client, [])  # type: ignore[arg-type]  # it is asked for no more than this
    assert reason in str(await health.not_ready())
