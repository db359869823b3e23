"""Makes the pictures of docs/images from a real run: `make screenshots`.

A dev server with its UI, a worker with the janitor and Chromium, all on loopback and stopped at the
end. The files that the agent asks about are made in a temporary folder, and deleted by the agent.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from playwright.async_api import FloatRect, Locator, Page, expect
from tests.ui.browser import CHROMIUM, PATIENCE_MS, page, workflow_url

from countersign.agent_client.dev_server import DevServer
from countersign.client import AgentClient

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
AGES_DAYS = {"cache.bin": 6, "notes.txt": 2, "report-2019.csv": 900, "today.md": 0, "trace.log": 30}
SESSION = "tidy-attic"
THINKING_S = 6
"""How long the person in the picture thinks about the question."""

WIDTH_PX, HEIGHT_PX, SCALE = 1_140, 1_400, 1.4
MAX_BYTES = 200_000
SETTLED_WITHIN_S = 20

ONLY_THE_WORKFLOW = """
nav, [data-testid=top-nav], [data-testid=navigation-header], [data-testid=back-to-workflows],
[data-testid=input-and-result] { display: none !important; }
main > * { padding-top: 0 !important; }
"""
HIDE_FACTS = """() => {
  let facts = [...document.querySelectorAll('main *')].find(e => e.textContent.trim() === 'State Transitions');
  while (!facts.parentElement.querySelector('h1')) facts = facts.parentElement;
  facts.style.display = 'none';
}"""


async def main() -> None:
    """Run the session, and take one picture while it waits and one when it has ended."""
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed; on Debian and Ubuntu: apt install chromium")
    with tempfile.TemporaryDirectory(prefix="attic-", dir="/tmp") as attic:
        _fill(Path(attic))
        async with DevServer(ui=True) as server, _worker(server.address):
            await _take(server, attic)


async def _take(server: DevServer, attic: str) -> None:
    client = await AgentClient.connect(server.address)
    # One workflow for each cycle, so that the picture shows each of them.
    prompt = f"Delete files older than 5 days in {attic}"
    handle = await client.start("janitor", prompt, session_id=SESSION, handover_after=timedelta(0))
    [question] = await handle.wait_for_questions()
    thought = asyncio.create_task(asyncio.sleep(THINKING_S))
    run_id = (await client.temporal.get_workflow_handle(SESSION).describe()).run_id
    async with page(WIDTH_PX, HEIGHT_PX, SCALE) as browser:
        await browser.goto(workflow_url(str(server.ui_url), SESSION, run_id, "user-metadata"))
        details = browser.frame_locator("iframe").last.locator("body")
        await expect(details).to_contain_text("countersign deny", timeout=PATIENCE_MS)
        await _shoot(browser, "session-waiting.png", browser.locator("iframe").last, 8)
        await thought
        await handle.answer((question.id, "y"), digest=question.digest)
        await handle.result()
        await browser.goto(workflow_url(str(server.ui_url), SESSION, run_id, "timeline"))
        await expect(browser.get_by_text("COMPLETED").first).to_be_visible(timeout=PATIENCE_MS)
        await browser.get_by_role("button", name="Descending").click()
        await _shoot(browser, "session-cycles.png", browser.get_by_text("cycle 5 · continue").last, 110)


async def _shoot(browser: Page, name: str, lowest: Locator, margin_px: int) -> None:
    """Take a picture of the workflow's name, its tabs and what the open one shows, down to `lowest`."""
    await browser.add_style_tag(content=ONLY_THE_WORKFLOW)
    await browser.evaluate(HIDE_FACTS)
    picture = await _settled(browser, lowest, margin_px)
    (IMAGES / name).write_bytes(picture)
    print(f"docs/images/{name}: {len(picture):,} bytes")
    if len(picture) > MAX_BYTES:
        raise SystemExit(f"{name} has {len(picture):,} bytes; at most {MAX_BYTES:,} are meant to be in the repository")


async def _settled(browser: Page, lowest: Locator, margin_px: int) -> bytes:
    """The picture, once two in a row are the same: after it has loaded, the page still moves for a moment."""
    before, picture = b"", b"none yet"
    async with asyncio.timeout(SETTLED_WITHIN_S):
        while picture != before:
            box = await lowest.bounding_box()
            assert box is not None  # it was seen
            clip = FloatRect(x=0, y=0, width=WIDTH_PX, height=box["y"] + box["height"] + margin_px)
            before, picture = picture, await browser.screenshot(clip=clip, animations="disabled")
    return picture


@asynccontextmanager
async def _worker(address: str) -> AsyncIterator[None]:
    """A worker that serves the janitor, ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "countersign.worker", "--agents", "examples.janitor", "--address", address, cwd=ROOT
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


def _fill(attic: Path) -> None:
    for name, age_days in AGES_DAYS.items():
        path = attic / name
        path.write_text(f"This is {name}.\n")
        modified_s = time.time() - age_days * 86_400
        os.utime(path, (modified_s, modified_s))


if __name__ == "__main__":
    asyncio.run(main())
