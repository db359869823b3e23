"""A server with its UI, and workers; skipped only where there is no Chromium."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal
from tests.ui.browser import CHROMIUM

from countersign.agent_client.dev_server import DevServer


@pytest.fixture(scope="module")
def server_with_ui() -> Iterator[DevServer]:
    """A dev server that serves the Temporal UI."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt install chromium")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(DevServer(ui=True)) as server:
        yield server


@pytest.fixture(scope="module")
def temporal_server(server_with_ui: DevServer) -> str:
    """The `lab` of these tests works on the server that has the UI."""
    return server_with_ui.address


@pytest.fixture
def ui_url(server_with_ui: DevServer) -> str:
    """Address of the Temporal UI."""
    assert server_with_ui.ui_url is not None
    return server_with_ui.ui_url
