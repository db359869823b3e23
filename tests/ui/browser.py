"""Debian's Chromium, driven by Playwright: nothing is downloaded, and no page but the Temporal UI is opened."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

from playwright.async_api import Page, ViewportSize, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE_MS = 60_000


@asynccontextmanager
async def page(width: int = 1280, height: int = 1000, scale: float = 1) -> AsyncIterator[Page]:
    """A page in a fresh browser, in English and UTC; pixels are `scale` times as fine as its size says."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=_FLAGS)
        try:
            context = await browser.new_context(
                viewport=ViewportSize(width=width, height=height),
                device_scale_factor=scale,
                locale="en-US",
                timezone_id="UTC",
            )
            context.set_default_timeout(PATIENCE_MS)
            yield await context.new_page()
        finally:
            await browser.close()


def workflow_url(ui_url: str, workflow_id: str, run_id: str, tab: str) -> str:
    """The address of a tab of a workflow's page: timeline, history, user-metadata, search-attributes, memo."""
    return f"{ui_url}/namespaces/default/workflows/{quote(workflow_id, safe='')}/{run_id}/{tab}"
