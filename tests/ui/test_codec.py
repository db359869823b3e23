"""The codec endpoint, used by the real Temporal UI."""

import asyncio
import base64
import os

import pytest
import uvicorn
from playwright.async_api import expect
from temporalio.client import Client
from tests.conftest import Lab
from tests.ui.browser import CHROMIUM, PATIENCE_MS, page
from tests.ui.test_temporal_ui import open_tab

from countersign.agent_client.dev_server import DevServer, free_port
from countersign.agent_client.payloads import data_converter
from countersign.agent_ops.access import anybody
from countersign.agent_ops.codec_app import codec_app

expect.set_options(timeout=PATIENCE_MS)
SECRET = "zebra-7f3a"


@pytest.fixture
async def encrypted_lab(tmp_path, monkeypatch):
    """A lab with a key, whose server's UI knows the codec endpoint; and the UI's address."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt install chromium")
    (tmp_path / "keys").write_text(f"k1 {base64.b64encode(os.urandom(32)).decode()}")
    monkeypatch.setenv("COUNTERSIGN_ENCRYPTION_KEYS", str(tmp_path / "keys"))
    port = free_port()
    async with DevServer(ui=True, codec_endpoint=f"http://127.0.0.1:{port}") as temporal:
        assert temporal.ui_url is not None
        app = codec_app(data_converter(), anybody, [temporal.ui_url], ["127.0.0.1"])
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
        serving = asyncio.create_task(server.serve())
        lab = Lab(temporal.address, tmp_path)
        yield lab, temporal.ui_url
        for worker in lab.workers:
            worker.kill()
        server.should_exit = True
        await serving


async def test_an_encrypted_session_is_readable_in_the_ui(encrypted_lab):
    """Current details and the history: cipher on the server, words on the page."""
    lab, ui_url = encrypted_lab
    agents = await lab.client(lab.worker())
    session = await agents.start("per-call", f"effects={lab.effects_file} effect:{SECRET}")
    await session.wait_for_questions()
    client = await Client.connect(lab.address)
    async with page() as browser:
        await open_tab(browser, ui_url, client, session.id, "user-metadata")
        details = browser.frame_locator("iframe").last.locator("body")
        await expect(details).to_contain_text(f'"label": "{SECRET}"')
        await open_tab(browser, ui_url, client, session.id, "memo")
        await expect(browser.get_by_role("main")).to_contain_text(SECRET)
